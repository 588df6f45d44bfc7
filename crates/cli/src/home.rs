//! A wallet's folder with its key, its session and its payments, readable only by its owner.
//!
//! ```text
//! ~/.surety/NAME/key                   the recovery phrase
//!               /addresses.json        positions of the other used addresses of its account
//!               /session.json          the session of `sign-in`
//!               /pending/LISTING.json  a signed payment whose outcome is not known
//!               /bought/TX.json        a settled payment
//!               /lock                  locked while something is signed
//! ```

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use crate::{
    failure::Failure,
    keys::Keys,
    phrase::{Phrase, Position},
};

const KEY: &str = "key";
const ADDRESSES: &str = "addresses.json";
const MAX_NAME: usize = 32;

/// A wallet's folder.
pub struct Home {
    name: String,
    pub folder: PathBuf,
}

impl Home {
    /// Returns the folder of the wallet `name`, which need not exist yet. `root` replaces `~/.surety`.
    ///
    /// # Errors
    /// Returns an error if the name is not valid for a folder.
    pub fn new(root: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            return Err(Failure::Usage(format!(
                "--wallet {name:?}: a name has 1 to {MAX_NAME} of a-z, 0-9 and hyphens"
            )));
        }
        let root = match root {
            Some(root) => root.to_path_buf(),
            None => std::env::home_dir()
                .ok_or_else(|| Failure::Usage("no home folder: set SURETY_HOME to the folder for wallets".into()))?
                .join(".surety"),
        };
        Ok(Self { name: name.to_owned(), folder: root.join(name) })
    }

    /// Stores the wallet's recovery phrase. An existing phrase is never overwritten.
    ///
    /// # Errors
    /// Returns an error if there is a phrase already, or if the file cannot be written.
    pub fn keep(&self, phrase: &Phrase) -> Result<(), Failure> {
        private_folder(&self.folder)?;
        let path = self.folder.join(KEY);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let words = phrase.words();
        let written = file.and_then(|mut file| file.write_all(words.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::Usage(format!(
                "there is already a wallet {}, in {}, which is kept. To make another one, add --wallet NAME",
                self.name,
                path.display()
            )),
            _ => cannot("write", &path, &error),
        })
    }

    /// Returns the wallet's keys, derived from its recovery phrase.
    ///
    /// # Errors
    /// See [`Home::phrase`].
    pub fn keys(&self) -> Result<Keys, Failure> {
        let account = self.phrase()?.account();
        let others: Vec<Position> = self.read(ADDRESSES)?.unwrap_or_default();
        let others = others.into_iter().map(|position| account.key(position)).collect::<Result<_, _>>()?;
        Ok(Keys::new(account.key(Position::FIRST)?, others))
    }

    /// Stores the positions of the wallet's used addresses. The first address is left out, because every wallet has it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep_addresses(&self, used: &[Position]) -> Result<(), Failure> {
        let others: Vec<&Position> = used.iter().filter(|position| **position != Position::FIRST).collect();
        self.write(ADDRESSES, &others)
    }

    /// Reads the wallet's recovery phrase.
    ///
    /// # Errors
    /// Returns an error if there is no phrase, if other users can read the file, or if the phrase is invalid.
    pub fn phrase(&self) -> Result<Phrase, Failure> {
        let path = self.folder.join(KEY);
        let metadata = fs::metadata(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::Usage(format!(
                "no wallet {0} in {1}: make one with `surety --wallet {0} wallet new`",
                self.name,
                self.folder.display()
            )),
            _ => cannot("read", &path, &error),
        })?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(Failure::Usage(format!("others may read {0}: chmod 600 {0}", path.display())));
        }
        let text = Zeroizing::new(fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?);
        Phrase::read(&text).map_err(|why| Failure::Usage(format!("{} has no recovery phrase: {why}", path.display())))
    }

    /// Locks the wallet, so that two commands do not pay at the same time. Dropping the returned file unlocks it.
    ///
    /// # Errors
    /// Returns an error if the lock file cannot be written.
    pub fn lock(&self) -> Result<File, Failure> {
        let path = self.folder.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        file.and_then(|file| file.lock().map(|()| file)).map_err(|error| cannot("write", &path, &error))
    }

    /// Reads a value from the file `name` in the wallet's folder. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let path = self.folder.join(name);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| cannot("read", &path, &error))?,
        };
        let kept = serde_json::from_str(&text);
        kept.map(Some).map_err(|error| Failure::Refused(format!("{} is damaged: {error}", path.display())))
    }

    /// Stores a value atomically in the file `name` in the wallet's folder.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write<T: Serialize>(&self, name: &str, kept: &T) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let text = serde_json::to_vec_pretty(kept).map_err(|error| Failure::Refused(error.to_string()))?;
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let fresh = path.with_extension("new");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
        let written = file.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.and_then(|()| fs::rename(&fresh, &path)).map_err(|error| cannot("write", &path, &error))
    }

    /// Deletes the file `name` in the wallet's folder.
    ///
    /// # Errors
    /// Returns an error if the file cannot be deleted.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("write", &path, &error)),
            _ => Ok(()),
        }
    }
}

fn private_folder(folder: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| cannot("write", folder, &error))
}

/// Creates the error for a failed file operation. `do_what` is the operation, "read" or "write".
fn cannot(do_what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Refused(format!("cannot {do_what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder for wallets, deleted when dropped.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("surety-home-{name}-{}", std::process::id())))
        }

        fn home(&self, name: &str) -> Home {
            Home::new(Some(&self.0), name).unwrap()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_stored_phrase_is_readable_by_its_owner_alone_and_never_overwritten() {
        let root = Root::new("kept");
        let (home, phrase) = (root.home("mine"), Phrase::random().unwrap());
        home.keep(&phrase).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&home.folder), mode(&home.folder.join(KEY))), (0o700, 0o600));
        assert!(matches!(home.keep(&Phrase::random().unwrap()), Err(Failure::Usage(_))));
        let first = phrase.account().key(Position::FIRST).unwrap();
        assert_eq!(home.keys().unwrap().address(), first.address());
        assert_eq!(home.phrase().unwrap().words(), phrase.words());
        fs::set_permissions(home.folder.join(KEY), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(home.keys(), Err(Failure::Usage(why)) if why.contains("chmod 600")));
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let root = Root::new("no-key");
        let home = root.home("none");
        private_folder(&home.folder).unwrap();
        let path = home.folder.join(KEY);
        fs::write(&path, "test ".repeat(24)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(home.keys(), Err(Failure::Usage(_))));
    }
}

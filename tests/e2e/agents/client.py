"""The official Python SDK as an agent has it: signs in, lists tools, searches, buys. Prints one JSON object.

Environment: MCP_URL; OWNER_URL, which consents to `?authorization=` and answers where the browser goes; QUERY.
"""

import asyncio
import json
import os
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Memory:
    """Tokens and client of one sign-in."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main():
    answered = {}

    async def redirect(authorization):
        def visit():
            with urlopen(f"{os.environ['OWNER_URL']}?authorization={quote(authorization, safe='')}") as answer:
                return answer.read().decode()

        answered.update(parse_qs(urlsplit(await asyncio.to_thread(visit)).query))

    async def callback():
        return AuthorizationCodeResult(code=answered["code"][0], state=answered["state"][0], iss=answered["iss"][0])

    url = os.environ["MCP_URL"]
    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=["http://127.0.0.1:33418/callback"])
    auth = OAuthClientProvider(url, metadata, Memory(), redirect, callback)
    seen = []

    async def progress(progress, total, message):
        seen.append(progress)

    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = await client.list_tools()
            found = await client.call_tool("search_listings", {"query": os.environ["QUERY"]})
            listing = found.structured_content["listings"][0]
            order = {"id": listing["id"], "mode": "instant"}
            bought = await client.call_tool("buy_listing", order, progress_callback=progress)
    print(json.dumps({"tools": len(tools.tools), "bought": bought.structured_content, "progress": seen}))


asyncio.run(main())

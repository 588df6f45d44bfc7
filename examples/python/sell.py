"""Charges ADA for each call of an API, with the stock x402 middleware for Flask and a facilitator.

    pip install "x402[flask,httpx]"
    FACILITATOR=https://HOST SELLER=addr_test1... python sell.py

A facilitator with keys takes one in FACILITATOR_KEY. Against a local stack (`make dev`), FACILITATOR is
http://127.0.0.1:8787.
"""

import os
import sys
from decimal import Decimal

from flask import Flask
from werkzeug.serving import make_server
from x402 import x402ResourceServerSync
from x402.http import FacilitatorConfig, HTTPFacilitatorClientSync, PaymentOption, RouteConfig
from x402.http.facilitator_client_base import AuthHeaders
from x402.http.middleware.flask import payment_middleware
from x402.schemas import AssetAmount

NETWORK = "cardano:preprod"


class ExactCardano:
    """The server's half of the scheme `exact` on Cardano: prices in ADA, and the terms of a direct payment."""

    scheme = "exact"
    default_asset_transfer_method = "default"
    payment_flows = {"default": {"supported": ["authorization"], "default": "authorization"}}

    def parse_price(self, price, network):
        return AssetAmount(amount=str(int(Decimal(price) * 1_000_000)), asset="lovelace")

    def enhance_payment_requirements(self, requirements, supported_kind, extensions):
        # 0 further blocks: the payment counts once it is in a block.
        policy = {"assetTransferMethod": "default", "confirmationPolicy": {"l1Confirmations": 0}}
        return requirements.model_copy(update={"extra": {**(requirements.extra or {}), **policy}})


class Key:
    """Sends the key that the facilitator's operator issued."""

    def get_auth_headers(self):
        header = {"Authorization": f"Bearer {os.environ['FACILITATOR_KEY']}"}
        return AuthHeaders(verify=header, settle=header, supported=header)


if not (os.environ.get("FACILITATOR") and os.environ.get("SELLER")):
    sys.exit("sell.py: name the facilitator in FACILITATOR, and the address to be paid in SELLER")
config = FacilitatorConfig(
    url=os.environ["FACILITATOR"], auth_provider=Key() if os.environ.get("FACILITATOR_KEY") else None
)
server = x402ResourceServerSync(HTTPFacilitatorClientSync(config)).register(NETWORK, ExactCardano())
price = os.environ.get("PRICE", "2")
option = PaymentOption(
    scheme="exact", network=NETWORK, pay_to=os.environ["SELLER"], price=price, max_timeout_seconds=300
)

app = Flask(__name__)
payment_middleware(app, {"GET /quote": RouteConfig(accepts=option, description="A quote from the market")}, server)


@app.get("/quote")
def quote():
    return {"pair": "ADA/USD", "price": "0.47"}


listening = make_server("127.0.0.1", int(os.environ.get("PORT", "4021")), app, threaded=True)
print(f"http://127.0.0.1:{listening.server_port}/quote costs {price} ADA", flush=True)
listening.serve_forever()

"""A device made of slixmpp, a client library that knows nothing of pepvault.

The test writes one JSON object a line to standard input: first the account,
then commands ({"op": ..., "n": number}). This program answers each on standard
output with the same number, and writes a line without number for every event
that slixmpp itself understood.
"""
import asyncio
import json
import logging
import sys

from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.xmlstream import ET, tostring

PLUGINS = ("xep_0030", "xep_0060", "xep_0092", "xep_0199")
TIMEOUT = 20


def say(**line):
    print(json.dumps(line), flush=True)


def listed(items):
    found = []
    for item in items["pubsub"]["items"]["substanzas"]:
        payload = item["payload"]
        found.append({
            "id": item["id"],
            "publisher": item.xml.get("publisher", ""),
            "xml": "" if payload is None else ET.tostring(payload, encoding="unicode"),
        })
    return found


class Device(ClientXMPP):
    def __init__(self, account):
        super().__init__(account["jid"], account["password"])
        self.ca_certs = account["ca"]
        self.service = account["service"]
        self.ready = asyncio.get_event_loop().create_future()
        for name in PLUGINS:
            self.register_plugin(name)
        self.pubsub = self["xep_0060"]
        self.disco = self["xep_0030"]
        self.add_event_handler("session_start", lambda _: self.settle(None))
        self.add_event_handler("failed_all_auth", lambda _: self.settle("not authenticated"))
        self.add_event_handler("connection_failed", lambda why: self.settle("no connection: %s" % why))
        for kind in ("publish", "retract", "purge", "delete"):
            self.add_event_handler("pubsub_" + kind, self.teller(kind))

    def settle(self, fault):
        if not self.ready.done():
            self.ready.set_result(fault)

    def teller(self, kind):
        def tell(message):
            event = message["pubsub_event"]
            line = {"event": kind, "from": str(message["from"]), "type": message["type"],
                    "stanza": tostring(message.xml, top_level=True)}
            if kind in ("publish", "retract"):
                items = event["items"]
                line["node"] = items["node"]
                line["ids"] = [item["id"] for item in items["substanzas"]]
                payload = items["item"]["payload"] if kind == "publish" else None
                line["xml"] = "" if payload is None else ET.tostring(payload, encoding="unicode")
            else:
                line["node"] = event[kind]["node"]
            say(**line)
        return tell

    async def do(self, c):
        op, node = c["op"], c.get("node")
        if op == "presence":
            self.send_presence(pto=self.service)
            return {}
        if op == "publish":
            iq = await self.pubsub.publish(self.service, node, id=c.get("id"),
                                           payload=ET.fromstring(c["xml"]), timeout=TIMEOUT)
            return {"ids": [iq["pubsub"]["publish"]["item"]["id"]]}
        if op == "items":
            iq = await self.pubsub.get_items(self.service, node, item_ids=c.get("ids"),
                                             max_items=c.get("max_items"), timeout=TIMEOUT)
            return {"items": listed(iq)}
        if op == "subscribe":
            iq = await self.pubsub.subscribe(self.service, node, bare=True, timeout=TIMEOUT)
            subscription = iq["pubsub"]["subscription"]
            return {"text": "%s %s" % (subscription["jid"], subscription["subscription"])}
        if op == "retract":
            await self.pubsub.retract(self.service, node, c["id"], notify=True, timeout=TIMEOUT)
            return {}
        if op == "delete":
            await self.pubsub.delete_node(self.service, node, timeout=TIMEOUT)
            return {}
        if op == "info":
            iq = await self.disco.get_info(self.service, node=node, cached=False, timeout=TIMEOUT)
            info = iq["disco_info"]
            return {"identities": ["%s/%s" % (i[0], i[1]) for i in info["identities"]],
                    "features": sorted(info["features"])}
        if op == "nodes":
            iq = await self.disco.get_items(self.service, timeout=TIMEOUT)
            return {"ids": sorted(item[1] for item in iq["disco_items"]["items"])}
        if op == "ping":
            await self["xep_0199"].send_ping(self.service, timeout=TIMEOUT)
            return {}
        if op == "version":
            iq = await self["xep_0092"].get_version(self.service, timeout=TIMEOUT)
            return {"text": "%s %s" % (iq["software_version"]["name"], iq["software_version"]["version"])}
        raise ValueError("unknown command %r" % op)

    async def run_command(self, c):
        try:
            say(n=c["n"], **await self.do(c))
        except IqError as e:
            error = e.iq["error"]
            say(n=c["n"], error={
                "type": error["type"], "condition": error["condition"], "text": error["text"],
                "extra": [child.tag for child in error.xml
                          if "xmpp-stanzas" not in child.tag],
            })
        except IqTimeout:
            say(n=c["n"], fault="no answer within %d s" % TIMEOUT)
        except Exception as e:  # the test shows it
            say(n=c["n"], fault="%s: %s" % (type(e).__name__, e))


async def main():
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    account = json.loads(await lines.readline())
    device = Device(account)
    device.connect((account["host"], account["port"]))
    fault = await asyncio.wait_for(device.ready, 60)
    say(n=0, fault=fault or "", text=str(device.boundjid))
    while fault is None:
        line = await lines.readline()
        if not line:
            break
        await device.run_command(json.loads(line))
    device.disconnect(wait=1)
    await asyncio.wait_for(device.disconnected, 5)


logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
asyncio.run(main())

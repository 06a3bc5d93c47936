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
from slixmpp.plugins.xep_0059 import Set
from slixmpp.plugins.xep_0060.stanza import Pubsub
from slixmpp.xmlstream import ElementBase, ET, register_stanza_plugin, tostring
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

PLUGINS = ("xep_0004", "xep_0030", "xep_0050", "xep_0059", "xep_0060", "xep_0092", "xep_0115",
           "xep_0163", "xep_0199", "xep_0203", "xep_0222", "xep_0223")
TIMEOUT = 20
FORM = "{jabber:x:data}x"
SYNC = "{urn:pepvault:sync:0}"

# slixmpp pages through pubsub only where it is told that pubsub has pages.
register_stanza_plugin(Pubsub, Set)


class Bookmark(ElementBase):
    """The payload of the storage profiles, which take a class of slixmpp's."""
    name = "bookmark"
    namespace = "urn:example:bookmarks"
    plugin_attrib = "bookmark"
    interfaces = {"place"}


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


def values(form):
    """What the fields of a form say, as lists of texts."""
    return {var: texts(field) for var, field in form.get_fields().items()}


def texts(field):
    found = field.get_value(convert=False)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


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
        for kind in ("publish", "retract", "purge", "delete", "config"):
            self.add_event_handler("pubsub_" + kind, self.teller(kind))
        self.keep_at_service()

    def keep_at_service(self):
        """Point the storage profiles, which know only the user's own server, at the service."""
        for name in ("publish", "get_items"):
            def elsewhere(jid, *args, call=getattr(self.pubsub, name), **kwargs):
                return call(jid or self.service, *args, **kwargs)
            setattr(self.pubsub, name, elsewhere)

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
                delay = message.get_plugin("delay", check=True)
                line["delay"] = "" if delay is None else str(delay["stamp"])
            else:
                line["node"] = event["configuration" if kind == "config" else kind]["node"]
            say(**line)
        return tell

    async def do(self, c):
        args = {name: value for name, value in c.items() if name not in ("op", "n", "to")}
        return await getattr(self, "do_" + c["op"])(c.get("to", self.service), **args)

    # Discovery (XEP-0030).

    async def do_info(self, to, node=None):
        iq = await self.disco.get_info(to, node=node, cached=False, timeout=TIMEOUT)
        info = iq["disco_info"]
        forms = {}
        for xml in info.xml.findall(FORM):
            fields = values(self["xep_0004"].stanza.Form(xml=xml))
            forms[fields.pop("FORM_TYPE")[0]] = fields
        return {"identities": ["%s/%s" % (i[0], i[1]) for i in info["identities"]],
                "features": sorted(info["features"]), "forms": forms}

    async def do_nodes(self, to):
        iq = await self.disco.get_items(to, timeout=TIMEOUT)
        return {"ids": sorted(item[1] for item in iq["disco_items"]["items"])}

    async def do_names(self, to, node):
        iq = await self.disco.get_items(to, node=node, timeout=TIMEOUT)
        return {"ids": sorted(item[2] for item in iq["disco_items"]["items"])}

    async def do_ping(self, to):
        await self["xep_0199"].send_ping(to, timeout=TIMEOUT)
        return {}

    async def do_version(self, to):
        iq = await self["xep_0092"].get_version(to, timeout=TIMEOUT)
        return {"text": "%s %s" % (iq["software_version"]["name"], iq["software_version"]["version"])}

    # Records (XEP-0060), pages (XEP-0059), storage (XEP-0222, XEP-0223).

    async def do_publish(self, to, node, xml, id=None, options=None):
        iq = await self.pubsub.publish(to, node, id=id, payload=ET.fromstring(xml), timeout=TIMEOUT,
                                       options=options and self.form("publish-options", options))
        return {"ids": [iq["pubsub"]["publish"]["item"]["id"]]}

    async def do_items(self, to, node, ids=None, max_items=None):
        iq = await self.pubsub.get_items(to, node, item_ids=ids, max_items=max_items, timeout=TIMEOUT)
        return {"items": listed(iq)}

    async def do_pages(self, to, node, size, reverse=False):
        iq = self.Iq(sto=to, stype="get")
        iq["pubsub"]["items"]["node"] = node
        pages = self["xep_0059"].iterate(iq, "pubsub", amount=size, reverse=reverse)
        found, counts, indexes = [], [], []
        async for page in pages:
            found.append([item["id"] for item in listed(page)])
            counts.append(page["pubsub"]["rsm"]["count"])
            indexes.append(page["pubsub"]["rsm"]["first_index"])
        return {"pages": found, "counts": counts, "indexes": indexes}

    # Downloads (urn:pepvault:sync:0): chunks come as iq of type set, and each is
    # answered.

    async def do_download(self, to, node, name, cursor="none", chunk_bytes=1000, window=2):
        self.chunks = asyncio.Queue()
        self.register_handler(Callback("chunk", MatchXPath("{%s}iq/%schunk" % (self.default_ns, SYNC)),
                                       self.chunks.put_nowait))
        try:
            begun = await self.begin_download(to, node, name, cursor, chunk_bytes, window)
            pages, cursors = [], []
            while True:
                iq = await asyncio.wait_for(self.chunks.get(), TIMEOUT)
                chunk = iq.xml.find(SYNC + "chunk")
                if chunk.get("download") != name or chunk.get("seq") != str(len(pages)):
                    refusal = iq.reply()
                    refusal["type"] = "error"
                    refusal["error"]["condition"] = "item-not-found"
                    refusal.send()
                    continue
                iq.reply().send()
                pages.append([item.get("id") for item in chunk])
                cursors.append(chunk.get("cursor"))
                if chunk.get("last") == "true":
                    return {"pages": pages, "ids": cursors, "counts": [begun.get("records")]}
        finally:
            self.remove_handler("chunk")

    async def do_request_download(self, to, node, name):
        """Ask for what nobody here knows how to take."""
        await self.begin_download(to, node, name, "none", 1000, 2)
        return {}

    async def begin_download(self, to, node, name, cursor, chunk_bytes, window):
        iq = self.Iq(sto=to, stype="set")
        iq.append(ET.Element(SYNC + "download", {
            "id": name, "node": node, "cursor": cursor,
            "chunk-bytes": str(chunk_bytes), "window": str(window)}))
        return (await iq.send(timeout=TIMEOUT)).xml.find(SYNC + "download")

    async def do_retract(self, to, node, id):
        await self.pubsub.retract(to, node, id, notify=True, timeout=TIMEOUT)
        return {}

    async def do_store(self, to, plugin, id, place):
        bookmark = Bookmark()
        bookmark["place"] = place
        iq = await self[plugin].store(bookmark, id=id, timeout=TIMEOUT)
        return {"ids": [iq["pubsub"]["publish"]["item"]["id"]]}

    async def do_retrieve(self, to, plugin, id):
        iq = await self[plugin].retrieve(Bookmark.namespace, id=id, timeout=TIMEOUT)
        return {"items": listed(iq)}

    # Nodes.

    async def do_create(self, to, node=None, config=None):
        iq = await self.pubsub.create_node(to, node, timeout=TIMEOUT,
                                           config=config and self.form("node_config", config))
        return {"text": iq["pubsub"]["create"]["node"]}

    async def do_default(self, to):
        iq = await self.pubsub.get_node_config(to, timeout=TIMEOUT)
        return {"form": values(self["xep_0004"].stanza.Form(xml=iq.xml.find(".//" + FORM)))}

    async def do_config(self, to, node):
        iq = await self.pubsub.get_node_config(to, node, timeout=TIMEOUT)
        return {"form": values(iq["pubsub_owner"]["configure"]["form"])}

    async def do_configure(self, to, node, change):
        """Send the whole form back, as a user who edits it does."""
        iq = await self.pubsub.get_node_config(to, node, timeout=TIMEOUT)
        form = iq["pubsub_owner"]["configure"]["form"]
        form.reply()
        form["values"] = change
        await self.pubsub.set_node_config(to, node, form, timeout=TIMEOUT)
        return {"form": values(form)}

    async def do_purge(self, to, node):
        await self.pubsub.purge(to, node, timeout=TIMEOUT)
        return {}

    async def do_delete(self, to, node):
        await self.pubsub.delete_node(to, node, timeout=TIMEOUT)
        return {}

    def form(self, kind, fields):
        form = self["xep_0004"].make_form(ftype="submit")
        form.add_field(var="FORM_TYPE", ftype="hidden", value="http://jabber.org/protocol/pubsub#" + kind)
        for var, value in fields.items():
            form.add_field(var=var, value=value)
        return form

    # Who hears, who may.

    async def do_presence(self, to):
        self.send_presence(pto=to)
        return {}

    async def do_absent(self, to):
        self.send_presence(pto=to, ptype="unavailable")
        return {}

    async def do_interest(self, to, node):
        """Announce NODE+notify in capabilities (XEP-0163, XEP-0115)."""
        self["xep_0163"].add_interest(node)
        return await self.announce(to)

    async def do_disinterest(self, to, node):
        self.disco.del_feature(feature=node + "+notify", jid=None)
        return await self.announce(to)

    async def announce(self, to):
        await self["xep_0115"].update_caps(broadcast=False)
        self.send_presence(pto=to)
        return {"text": await self["xep_0115"].get_verstring()}

    async def do_subscribe(self, to, node, bare=True):
        iq = await self.pubsub.subscribe(to, node, bare=bare, timeout=TIMEOUT)
        subscription = iq["pubsub"]["subscription"]
        return {"text": "%s %s" % (subscription["jid"], subscription["subscription"])}

    async def do_unsubscribe(self, to, node, bare=True):
        await self.pubsub.unsubscribe(to, node, bare=bare, timeout=TIMEOUT)
        return {}

    async def do_options(self, to, node, jid):
        iq = await self.pubsub.get_subscription_options(to, node, jid, timeout=TIMEOUT)
        return {"form": values(iq["pubsub"]["options"]["options"])}

    async def do_subscriptions(self, to, node=None):
        iq = await self.pubsub.get_subscriptions(to, node, timeout=TIMEOUT)
        return {"ids": sorted("%s %s %s" % (s["node"], s["jid"], s["subscription"])
                              for s in iq["pubsub"]["subscriptions"]["substanzas"])}

    async def do_affiliations(self, to):
        iq = await self.pubsub.get_affiliations(to, timeout=TIMEOUT)
        return {"ids": sorted("%s %s" % (a["node"], a["affiliation"])
                              for a in iq["pubsub"]["affiliations"]["substanzas"])}

    async def do_node_affiliations(self, to, node):
        iq = await self.pubsub.get_node_affiliations(to, node, timeout=TIMEOUT)
        return {"ids": sorted("%s %s" % (a["jid"], a["affiliation"])
                              for a in iq["pubsub_owner"]["affiliations"]["substanzas"])}

    async def do_affiliate(self, to, node, jid, affiliation):
        await self.pubsub.modify_affiliations(to, node, [(jid, affiliation)], timeout=TIMEOUT)
        return {}

    # Commands (XEP-0050).

    async def do_commands(self, to):
        iq = await self["xep_0050"].get_commands(to, timeout=TIMEOUT)
        return {"ids": sorted(item[1] for item in iq["disco_items"]["items"])}

    async def do_command(self, to, node, steps):
        """Go through a command: each step is how to go on, and what to fill in."""
        heard, session, step = [], None, {"action": "execute"}
        while True:
            answer = None
            if "fill" in step:
                answer = self["xep_0004"].make_form(ftype="submit")
                for var, value in step["fill"].items():
                    answer.add_field(var=var, value=value)
            iq = await self["xep_0050"].send_command(to, node, action=step["action"], payload=answer,
                                                     sessionid=session, timeout=TIMEOUT)
            command = iq["command"]
            session = command["sessionid"]
            xml = command.xml.find(FORM)
            form = {} if xml is None else values(self["xep_0004"].stanza.Form(xml=xml))
            heard.append({"status": command["status"], "actions": sorted(command["actions"]), "form": form})
            if command["status"] != "executing" or not steps:
                return {"steps": heard}
            step = steps.pop(0)

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

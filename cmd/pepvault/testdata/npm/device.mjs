// A device made of @xmpp/client, a client library that knows nothing of
// pepvault, nor of pubsub: this program says of pubsub what a program of its
// user would. It speaks with the test as slixmpp_device.py does: a JSON object
// a line, first the account, then commands; events have no number.
import { createHash, webcrypto } from "node:crypto";
import { createInterface } from "node:readline";

globalThis.crypto ??= webcrypto; // Node.js 18 keeps it aside
const { client, xml } = await import("@xmpp/client");

const pubsub = "http://jabber.org/protocol/pubsub";
const disco = "http://jabber.org/protocol/disco#info";
const rsm = "http://jabber.org/protocol/rsm";
const software = "urn:example:npm-device";
const timeout = 20_000;

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const account = JSON.parse((await lines.next()).value);
const [bare, resource] = account.jid.split("/");
const [username, domain] = bare.split("@");
const xmpp = client({
  service: `xmpp://${account.host}:${account.port}`,
  domain,
  username,
  password: account.password,
  resource,
  timeout,
});
xmpp.reconnect.stop();
const failed = new Promise((resolve) => xmpp.once("error", resolve));

// What the client can do, and what it wants to hear of (XEP-0030, XEP-0115).
const features = [disco, "http://jabber.org/protocol/caps", "urn:xmpp:ping"];

function verification() {
  const text = "client/pc//npm<" + [...features].sort().map((f) => f + "<").join("");
  return createHash("sha1").update(text).digest("base64");
}

xmpp.iqCallee.get(disco, "query", ({ element }) => {
  const { node } = element.attrs;
  return xml(
    "query",
    node ? { xmlns: disco, node } : { xmlns: disco },
    xml("identity", { category: "client", type: "pc", name: "npm" }),
    ...features.map((f) => xml("feature", { var: f })),
  );
});

xmpp.on("stanza", (stanza) => {
  if (!stanza.is("message")) return;
  const event = stanza.getChild("event", pubsub + "#event");
  const what = event ? event.getChildElements()[0] : xml("none");
  const line = { from: stanza.attrs.from, type: stanza.attrs.type, stanza: stanza.toString(), node: what.attrs.node, event: what.name };
  if (what.is("items")) {
    const all = what.getChildElements();
    line.event = all[0].is("retract") ? "retract" : "publish";
    line.ids = all.map((item) => item.attrs.id);
    line.xml = all[0].getChildElements().map(String).join("");
  }
  say(line);
});

// request sends the content of an IQ and returns what is in the answer.
async function request(type, child) {
  const iq = xml("iq", { type, to: account.service }, child);
  return (await xmpp.iqCaller.request(iq, timeout)).getChildElements()[0];
}

function listed(answer) {
  return answer.getChild("items").getChildElements().map((item) => ({
    id: item.attrs.id,
    publisher: item.attrs.publisher,
    xml: item.getChildElements().map(String).join(""),
  }));
}

function form(kind, fields) {
  const field = (name, value, attrs = {}) => xml("field", { var: name, ...attrs }, xml("value", {}, value));
  return xml(
    "x",
    { xmlns: "jabber:x:data", type: "submit" },
    field("FORM_TYPE", `${pubsub}#${kind}`, { type: "hidden" }),
    ...Object.entries(fields).map(([name, value]) => field(name, value)),
  );
}

const commands = {
  async interest({ node }) {
    features.push(node + "+notify");
    const ver = verification();
    const caps = xml("c", { xmlns: "http://jabber.org/protocol/caps", hash: "sha-1", node: software, ver });
    await xmpp.send(xml("presence", { to: account.service }, caps));
    return { text: ver };
  },
  async publish({ node, id, text, options }) {
    const item = xml("item", id ? { id } : {}, xml("note", { xmlns: "urn:example:npm" }, text));
    const answer = await request(
      "set",
      xml("pubsub", { xmlns: pubsub }, xml("publish", { node }, item), options && xml("publish-options", {}, form("publish-options", options))),
    );
    return { ids: answer.getChild("publish").getChildren("item").map((i) => i.attrs.id) };
  },
  async items({ node, ids = [] }) {
    const answer = await request("get", xml("pubsub", { xmlns: pubsub }, xml("items", { node }, ...ids.map((id) => xml("item", { id })))));
    return { items: listed(answer) };
  },
  async pages({ node, size }) {
    const pages = [];
    for (let after; ; ) {
      const set = xml("set", { xmlns: rsm }, xml("max", {}, String(size)), after && xml("after", {}, after));
      const answer = await request("get", xml("pubsub", { xmlns: pubsub }, xml("items", { node }), set));
      const found = listed(answer);
      if (found.length === 0) return { pages };
      pages.push(found.map((item) => item.id));
      after = answer.getChild("set", rsm).getChildText("last");
    }
  },
  async retract({ node, id }) {
    await request("set", xml("pubsub", { xmlns: pubsub }, xml("retract", { node, notify: "true" }, xml("item", { id }))));
    return {};
  },
  async delete({ node }) {
    await request("set", xml("pubsub", { xmlns: pubsub + "#owner" }, xml("delete", { node })));
    return {};
  },
  async ping() {
    await request("get", xml("ping", { xmlns: "urn:xmpp:ping" }));
    return {};
  },
};

async function run({ op, n, ...args }) {
  try {
    say({ n, ...(await commands[op](args)) });
  } catch (e) {
    if (e.name !== "StanzaError") {
      say({ n, fault: `${e.name}: ${e.message}` });
      return;
    }
    const more = e.element.getChildElements().filter((c) => c.attrs.xmlns !== "urn:ietf:params:xml:ns:xmpp-stanzas");
    say({ n, error: { type: e.type, condition: e.condition, text: e.text ?? "", extra: more.map((c) => c.name) } });
  }
}

const fault = await Promise.race([xmpp.start().then((jid) => ({ text: String(jid) }), (e) => ({ fault: String(e) })), failed.then((e) => ({ fault: String(e) }))]);
say({ n: 0, ...fault });
for await (const line of lines) await run(JSON.parse(line));
await xmpp.stop();
process.exit(0);

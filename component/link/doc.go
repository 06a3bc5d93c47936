// Package link keeps one XEP-0114 stream to the host: it dials, does the
// handshake, cuts the host's bytes into stanzas, pairs answers with the IQs
// that asked for them, notices a dead line and connects again, for ever.
//
// One goroutine reads: the one that calls [Link.Run]. The writer is somebody
// else's ([Options.Serve]); link only gives it each new connection and waits
// for it. What link itself has to say (pings) goes the same way as everybody's
// stanzas ([Options.Send]).
//
// mellium.im/xmpp does the handshake and nothing after it: under its own loop
// any user's stanza can end the stream for all. Here only bytes that no host
// may send end it; a stanza above the [Limits] is skipped as it streams and
// handed on by its start tag.
package link

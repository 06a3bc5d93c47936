// Package wire is all of the wire format: XML to the plain values of package
// pep and back, in both directions, with every error condition and every
// element name. It opens no socket and keeps no state.
//
// The service reads requests with [DecodeRequest] and writes with
// [AppendResult], [AppendError], [EventBody] and [AppendMessage]. A device
// writes with [AppendRequest] and reads with [DecodeReply] and
// [DecodeMessage]. What a device can do, it announces with
// [AppendAnnouncement] and [AppendInfo]; the service reads that with
// [DecodePresence] and [DecodeInfo].
//
// One file has one kind of operation, in all directions. To add one: read it
// in the table of operations, ask and answer it in the file of its kind.
//
// What comes in is read with encoding/xml's raw tokens under our own namespace
// scopes; what goes out is appended as bytes. No token is ever re-emitted
// through encoding/xml, which spoils namespaces.
package wire

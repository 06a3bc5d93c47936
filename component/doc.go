// Package component is a stanza's way through the service: who asks, what the
// engine says, the answer, and the events that follow from it.
//
// The reader of the stream (package link) hands every stanza to
// [Service.Stanza], which never blocks: presence is noted at once, requests
// are put on the queue of their sender's account. A goroutine lives for as
// long as such a queue has something in it, decodes, asks the engine
// (package pep) and waits for it, so that one account is served in order and
// all accounts in parallel. Answers and events go to the writer (package
// lane), from the store's commit loop or from the account's goroutine.
//
// Every get and set is answered exactly once.
package component

package pep

import (
	"time"

	"pepvault/vault"
)

// Presence is a directed presence of a device (PROTOCOL §6).
type Presence struct {
	Sender Sender
	// Owner is for whose vaults the device is there: its own account if it
	// told the service, another if it told that one's explicit address.
	Owner vault.Account
	// Caps are the hashes of its capabilities, the preferred one first.
	Caps []CapsHash
	// Silent says that it has no caps element at all: what it announced
	// before still holds (XEP-0115 §8.4).
	Silent bool
}

// CapsHash names the capabilities of a client by their hash. The zero CapsHash
// stands for those that no hash names.
type CapsHash struct {
	Hash string // as in vault.Capabilities; "" for legacy caps, which name no algorithm
	Node string // of the disco#info request that tells what it stands for
}

// Arrival is what a directed presence leads to.
type Arrival struct {
	// New says that the resource was not known.
	New bool
	// Crowded says that the account has more resources than may be known: see
	// Engine.Stalest.
	Crowded bool
	// Forgotten is the address of a resource that had to be forgotten at
	// once, since there were twice as many as may be known; else "".
	Forgotten string
	// Greet says that the resource now hears of vaults of which it did not:
	// see Engine.Greet.
	Greet bool
	// Ask has to be asked now.
	Ask []Question
}

// Question is a disco#info request that has to be sent now, to learn what a
// client can do. Each has to end, within a minute or so, in one call of
// Engine.Learn or Engine.Unknown with the same Sender and CapsHash, also if
// it could not be sent or the connection ended. At most one a resource is
// under way.
type Question struct {
	To   Sender
	Caps CapsHash
}

// Announced is what a client says of itself, as far as it matters here.
type Announced struct {
	Nodes []string // its features that end in "+notify", without that; in any order
	Sync  bool     // whether it has the feature urn:pepvault:sync:0
}

// Learned is what follows from the end of a Question.
type Learned struct {
	// Greet are the resources that now hear of vaults of which they did not:
	// see Engine.Greet.
	Greet []Sender
	// Ask has to be asked now.
	Ask []Question
}

// Arrive notes a device's directed presence.
func (e *Engine) Arrive(p Presence) Arrival { return e.interest.arrive(p) }

// Absent notes that a device is unavailable for the vaults of one owner. With
// the last owner it is forgotten as by Leave.
func (e *Engine) Absent(s Sender, owner vault.Account) { e.interest.absent(s, owner) }

// Leave forgets a resource, and what it subscribed to with its full JID.
func (e *Engine) Leave(account vault.Account, resource string) {
	e.interest.leave(account, resource)
}

// Arrivals counts the directed presences that came since the service started.
func (e *Engine) Arrivals() uint64 { return e.interest.arrived() }

// LeaveSince is Leave for a resource that did not answer what it was asked when
// Arrivals was at that. If its presence came since, that is of a later session:
// the resource stays, and kept is true.
func (e *Engine) LeaveSince(s Sender, arrivals uint64) (kept bool) {
	return e.interest.leaveSince(s, arrivals)
}

// Learn notes the answer to a disco#info request. verified says that the
// answer has the hash c.Hash: then it holds for every client that announces
// this hash, now and later. Else it holds for this one resource alone, and
// as long as it announces c. The zero CapsHash is the answer to a request
// without node: it counts unless the resource has announced a verified hash
// since the service started.
func (e *Engine) Learn(s Sender, c CapsHash, a Announced, verified bool) Learned {
	return e.interest.learn(s, c, a, verified)
}

// Unknown notes that a Question was not answered with a result. It is asked
// again after the next presence of that resource.
func (e *Engine) Unknown(s Sender, c CapsHash) Learned { return e.interest.unknown(s, c) }

// Known returns all resources that are known, in no order.
func (e *Engine) Known() []Sender { return e.interest.known(time.Time{}) }

// Unseen returns the resources that were not heard of since a time.
func (e *Engine) Unseen(since time.Time) []Sender { return e.interest.known(since) }

// Heard notes a sign of life of a resource, if it is known.
func (e *Engine) Heard(s Sender) { e.interest.heard(s) }

// Stalest returns the resource of a crowded account that was heard of longest
// ago; false if the account is not crowded.
func (e *Engine) Stalest(account vault.Account) (Sender, bool) { return e.interest.stalest(account) }

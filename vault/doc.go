// Package vault is the domain of the service: accounts, vaults, records,
// revisions, epochs and cursors, the limits that bound them, and the contract
// of the store that keeps them. It knows neither XML nor SQL nor sockets, and
// it never sees a key: what a device sealed is an opaque [Payload].
//
// A vault is one pubsub node of one account, so ([Account], node) is its
// [Key]. Every change of a vault takes the next [Revision] of that vault, in
// the transaction that makes the change.
package vault

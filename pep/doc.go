// Package pep is the pubsub engine of the service (XEP-0060, in the manner of
// XEP-0163): who may do what, the rules of each operation, subscriptions, and
// who hears of a change. It works on plain values: it knows neither XML nor
// SQL nor sockets. Package pep/wire turns stanzas into its requests and its
// answers into stanzas.
//
// A change passes one access table, runs as a pure closure inside one
// transaction of the store, and is answered and announced by the commit loop,
// after it is on disk and in the order of the commits.
package pep

// Package device is a device's side of the protocol: what it holds of a vault,
// and the rules by which it takes in what it is told and offers what it
// changed, so that it ends with what the service has and no change disappears
// (PROTOCOL §6-8). It opens no connection and keeps no file: package c2s has
// the connection.
package device

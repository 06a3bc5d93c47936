// Package seal is what devices of an account do to the records of a vault before
// a service sees them: XChaCha20-Poly1305 under a key of the vault, which is
// itself wrapped, in a record of the vault, under a pass phrase (Argon2id) or a
// key file. It knows no wire format and keeps nothing.
//
// What is sealed is bound to its place: the owner, the node, the record id, the
// key version and the key itself, by its [KeyID]. So a service that swaps
// records, answers with one under another id, or goes back to an older key, is
// noticed. It can withhold records, and put one back to an older text that was
// sealed at this very place under this very key: [Record.Generation] is for
// noticing that. It sees how many records there are, when each was written, the
// id of its key, and its length up to the step that it is padded to (12 % at most).
//
// A record's id is derived from its name under a [NameKey], and the name is
// sealed with the content. The key of names outlives rotations, since ids do:
// whoever once had the keys of a vault can recognise names that he guesses.
package seal

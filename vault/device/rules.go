package device

// rules are those of PROTOCOL §6-9 that a device could get wrong. A replica
// follows all of them; tests leave one out to show that it is needed.
type rules uint32

const (
	followChain    rules = 1 << iota // §6: adopt a cursor only from the one that is held
	wholeChange                      // §6: and only with all that the state names
	ownChain                         // §6: also from an answer of one's own
	waitForEnd                       // §6: adopt nothing from a sync's request to its last page
	lookAgain                        // §6: sync again if something was heard of meanwhile
	dropUnseen                       // §7: what a full pass did not show is gone
	rescueLost                       // §7: what was held above the fork is not dropped
	rememberLost                     // §7: a pass that replaces a lost one stays lost
	carryBases                       // §7: compare no revisions across epochs
	rotateTogether                   // §7: what is above the vault's key version goes in one rotation
	expectBase                       // §8: say what a change relies on
	repeatSame                       // §8: repeat what was not answered as it was
	keepBoth                         // §8: never send a refused change again unasked
	followRotation                   // §8: what was made of a record stands on what a rotation made of it
	sealAgain                        // §9: seal with the vault's key what was sealed with another
	stageAgain                       // §9: seal and stage again what others changed meanwhile
	takeWinner                       // §9: of two rotations to one version the first one holds
	asOne                            // §9: a batch is made as a whole or not at all
	askFirst                         // §9: only a person confirms that nearly all goes
	beginAnew                        // §9: a batch of which it is in doubt what the service holds has to begin anew
	allRules       rules = 1<<iota - 1
)

func (r rules) has(rule rules) bool { return r&rule != 0 }

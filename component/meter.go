package component

import (
	"reflect"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// Meter counts what the service does. Its methods may be called by any
// goroutine, the reader and the commit loop among them, so they do not block.
type Meter interface {
	// Answered: a request gets its one answer. op is of [Operations]; result is
	// [ResultOK] or the condition of the stanza error (RFC 6120 §8.3.3), of which
	// package wire has a fixed number. took is the time from the arrival of the
	// request until the answer was queued; a large answer is made after that.
	Answered(op, result string, took time.Duration)
	// Notified: what became of one message with an event.
	Notified(Delivery)
	// Rejected: a request was refused before it was read.
	Rejected(Rejection)
	// Downloads: so many more pushed downloads are under way; negative: fewer.
	Downloads(n int)
	// Chunk: a chunk of a pushed download was made, of so many bytes.
	Chunk(bytes int)
}

// ResultOK is the result of a request that was answered without an error.
const ResultOK = "ok"

// Delivery is what became of a message with an event.
type Delivery string

// All of them.
const (
	Sent    Delivery = "sent"    // queued for the host
	Missed  Delivery = "missed"  // there was no room: the device is told later where its vault stands
	Bounced Delivery = "bounced" // an error came back
)

// Deliveries returns all of them.
func Deliveries() []Delivery { return []Delivery{Sent, Missed, Bounced} }

// Rejection is why a request was refused before it was read (PROTOCOL §12).
type Rejection string

// All of them.
const (
	TooOften   Rejection = "rate"     // the account asks too often
	TooMany    Rejection = "pending"  // too many requests of the account wait
	NoRoom     Rejection = "room"     // the service has too much to send
	TooLarge   Rejection = "size"     // the stanza is beyond the inbound limits
	IsStopping Rejection = "stopping" // the service is
	NotServed  Rejection = "sender"   // the account is of no domain that is served
)

// Rejections returns all of them.
func Rejections() []Rejection {
	return []Rejection{TooOften, TooMany, NoRoom, TooLarge, IsStopping, NotServed}
}

// silence is the Meter that counts nothing.
type silence struct{}

func (silence) Answered(string, string, time.Duration) {}
func (silence) Notified(Delivery)                      {}
func (silence) Rejected(Rejection)                     {}
func (silence) Downloads(int)                          {}
func (silence) Chunk(int)                              {}

const (
	// opUnread stands for a request that was refused before it was read.
	opUnread = "unread"
	// opUnknown stands for one that is none of those below.
	opUnknown = "unknown"
)

// operations names each kind of request that the service takes.
var operations = map[reflect.Type]string{
	reflect.TypeFor[pep.Publish]():           "publish",
	reflect.TypeFor[pep.Retract]():           "retract",
	reflect.TypeFor[pep.Items]():             "items",
	reflect.TypeFor[wire.ItemNames]():        "item_names",
	reflect.TypeFor[pep.Sync]():              "sync",
	reflect.TypeFor[pep.Download]():          "download",
	reflect.TypeFor[pep.Create]():            "create",
	reflect.TypeFor[pep.ReadConfig]():        "read_config",
	reflect.TypeFor[pep.DefaultConfig]():     "default_config",
	reflect.TypeFor[pep.Configure]():         "configure",
	reflect.TypeFor[pep.Purge]():             "purge",
	reflect.TypeFor[pep.Delete]():            "delete",
	reflect.TypeFor[pep.Subscribe]():         "subscribe",
	reflect.TypeFor[pep.Unsubscribe]():       "unsubscribe",
	reflect.TypeFor[pep.ListSubscriptions](): "list_subscriptions",
	reflect.TypeFor[pep.ReadOptions]():       "read_options",
	reflect.TypeFor[pep.SetOptions]():        "set_options",
	reflect.TypeFor[pep.ListAffiliations]():  "list_affiliations",
	reflect.TypeFor[pep.ReadAffiliations]():  "read_affiliations",
	reflect.TypeFor[pep.SetAffiliations]():   "set_affiliations",
	reflect.TypeFor[pep.BeginBatch]():        "begin_batch",
	reflect.TypeFor[pep.Unstage]():           "unstage",
	reflect.TypeFor[pep.CommitBatch]():       "commit_batch",
	reflect.TypeFor[pep.AbortBatch]():        "abort_batch",
	reflect.TypeFor[pep.Erase]():             "erase",
	reflect.TypeFor[pep.ListVaults]():        "list_vaults",
	reflect.TypeFor[pep.DescribeVault]():     "describe_vault",
	reflect.TypeFor[pep.DescribeService]():   "describe_service",
	reflect.TypeFor[wire.Ping]():             "ping",
	reflect.TypeFor[wire.Version]():          "version",
	reflect.TypeFor[wire.Command]():          "command",
	reflect.TypeFor[wire.ListCommands]():     "list_commands",
	reflect.TypeFor[wire.DescribeCommands](): "describe_commands",
	reflect.TypeFor[wire.DescribeCommand]():  "describe_command",
}

func operationOf(call wire.Call) string {
	if op, known := operations[reflect.TypeOf(call)]; known {
		return op
	}
	return opUnknown
}

// Operations returns every value of op that a [Meter] sees.
func Operations() []string {
	all := []string{opUnread, opUnknown}
	for _, op := range operations {
		all = append(all, op)
	}
	return all
}

// Package configs is the operator's configuration: one table of keys (type,
// unit, default, bounds, text) from which the file is read, checked and
// documented. It says all faults of a file at once, each with its line.
//
// The folder also holds the files for operators; pepvault.toml among them is
// generated from the table.
package configs

import (
	"log/slog"
	"time"
)

// Config is a checked configuration. [Load] makes it; nobody changes it.
type Config struct {
	Component Component
	Access    Access
	Limits    Limits
	Store     Store
	Stream    Stream
	HTTP      HTTP
	Log       Log

	// Warnings name what is allowed but unwise, a line each, spelled like a
	// [Fault].
	Warnings []string
}

// Values of Component.TLS.
const (
	TLSOff    = "off"
	TLSDirect = "direct"
)

// Component is the service towards its host (XEP-0114).
type Component struct {
	JID     string // a domain, prepared
	Server  string // host:port
	Secret  Secret // never empty
	TLS     string // TLSOff or TLSDirect
	Name    string
	Contact string // a URI, or ""

	secretFile string // absolute, or ""
}

// Access says who is served.
type Access struct {
	Domains []string // prepared, at least one
	Admins  []string // bare JIDs, prepared
}

// Limits bound what accounts may store and ask for.
type Limits struct {
	MaxRecords         int // per vault
	MaxRecordBytes     int
	MaxVaults          int // per account
	MaxAccountBytes    int64
	MaxBatchRecords    int
	MaxStagedBytes     int64 // per account
	BatchExpiry        time.Duration
	RatePerSecond      int // requests of one account
	RateBurst          int
	MaxPendingRequests int // per account
	MaxResources       int // per account
	MaxSubscriptions   int // per vault
	MaxDownloads       int // per account
	MaxAffiliations    int // per vault
	MaxBatches         int // per account
	TombstonesFactor   int
	ResourceDays       int
	MaxInboundBytes    int
	MaxInboundDepth    int
	CapsCache          int
	MassDeleteShare    float64
	MassDeleteMin      int
	ForeignPayloads    bool
}

// DriverSQLite is the value of Store.Driver.
const DriverSQLite = "sqlite"

// Store says where the data is.
type Store struct {
	Driver string
	Path   string // absolute
}

// Stream tunes what goes to the host.
type Stream struct {
	ChunkBytes      int
	MaxStanzaBytes  int
	DeviceWindow    int // chunks
	HostWindowBytes int
	QueueBytes      int
	ConfirmJID      string // a domain, prepared
	AckTimeout      time.Duration
	VerifyTimeout   time.Duration
	ConfirmTimeout  time.Duration
}

// HTTP is the server for health and figures.
type HTTP struct {
	Listen string // host:port, or "" = off
}

// Values of Log.Format.
const (
	LogText = "text"
	LogJSON = "json"
)

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format string // LogText or LogJSON
}

package report

// Premise is what an estimate is made for: a small server and its people.
type Premise struct {
	Users           int     `json:"users"`
	Devices         float64 `json:"devices"`          // of each
	Records         int     `json:"records"`          // of each
	FewConnections  int     `json:"few_connections"`  // of each, a day: log-ins with a load of the vault
	ManyConnections int     `json:"many_connections"` // the same on a busy day
	Saves           int     `json:"saves"`            // of each, a day
	Cores           float64 `json:"cores"`
	Memory          int64   `json:"memory_bytes"`
	Link            float64 `json:"link_bits_per_s"`
}

// SmallServer is the standard premise: 100 users with 256 records each on one
// core, 1 GiB and 200 Mbit/s.
func SmallServer() Premise {
	return Premise{
		Users: 100, Devices: 3, Records: 256, FewConnections: 10, ManyConnections: 30, Saves: 5,
		Cores: 1, Memory: 1 << 30, Link: 200e6,
	}
}

// Outlook is an estimate for all systems that were measured on one host.
type Outlook struct {
	Premise Premise `json:"premise"`
	// Host is the server and its settings, as they were measured.
	Host    string   `json:"host"`
	Systems []string `json:"systems"` // targets: "component", "pep"
	// Rows are the figures for the premise's users.
	Rows []Expectation `json:"rows"`
	// Reach says how far it goes, for more and more users.
	Reach []Reach `json:"reach"`
	// Missing names what no results file was given for, and which run measures
	// it.
	Missing []string `json:"missing,omitempty"`
	// Rules are how all of it was computed, a sentence each.
	Rules []string `json:"rules"`
}

// Expectation is one figure of all systems.
type Expectation struct {
	Figure string  `json:"figure"` // in words, with its unit
	Unit   string  `json:"unit"`   // "s", "bytes", "%"
	Cells  []Range `json:"cells"`  // by system, in their order
}

// Range is a figure, from a quiet day to a busy one; both are equal where there
// is no such difference.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Missing says that the figure could not be computed.
	Missing bool   `json:"missing,omitempty"`
	Text    string `json:"text"` // for people, with its unit
}

// Fit is how well a number of users fits a server.
type Fit string

// The fits.
const (
	FitWell    Fit = "fits with room to spare"
	FitLikely  Fit = "should fit; try it on the server"
	FitUntried Fit = "only a test on the server can tell"
)

// Reach is how well so many users fit.
type Reach struct {
	Users int         `json:"users"`
	Cells []ReachCell `json:"cells"` // by system, in their order
}

// ReachCell is one system's fit, and what it is due to.
type ReachCell struct {
	Fit Fit    `json:"fit"`
	Why string `json:"why"`
}

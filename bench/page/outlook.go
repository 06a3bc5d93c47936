package page

import (
	"fmt"
	"strconv"

	"pepvault/bench/report"
)

// outlook is the estimate for a small server.
func outlook(estimates []report.Outlook) Section {
	s := Section{ID: "estimate", Title: "Estimate for a small server"}
	for _, o := range estimates {
		p := o.Premise
		if len(s.Text) == 0 {
			s.Title = fmt.Sprintf("Estimate for %s on a small server", plural(int64(p.Users), "user", "users"))
			s.Text = append(s.Text, fmt.Sprintf("Computed from the runs, not measured: %s with %s devices each and vaults of %s, who connect %d to %d times and save %d times a day, on a server with %s, %s of memory and a link of %s Mbit/s.",
				plural(int64(p.Users), "user", "users"), strconv.FormatFloat(p.Devices, 'g', -1, 64), plural(int64(p.Records), "record", "records"),
				p.FewConnections, p.ManyConnections, p.Saves, cores(p.Cores), exact(Bytes.text(float64(p.Memory))), digits(p.Link/1e6)))
		}
		if t := expectations(o); len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
		if t := reach(o); len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
		for _, missing := range o.Missing {
			s.Notes = append(s.Notes, "Not known with "+o.Host+": "+missing)
		}
	}
	if len(s.Tables) == 0 {
		s.Text, s.Notes = nil, nil
		s.Missing = "The estimate needs runs of mix or max (CPU), storm (restart and network) and disk (growth)."
		return s
	}
	s.Notes = append(s.Notes, estimates[0].Rules...)
	return s
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(n, 'g', 3, 64) + " cores"
}

func expectations(o report.Outlook) Table {
	t := Table{Caption: fmt.Sprintf("What %s need. %s.", plural(int64(o.Premise.Users), "user", "users"), o.Host), Columns: []string{"figure"}}
	for _, name := range o.Systems {
		t.Columns = append(t.Columns, system(name))
	}
	for _, e := range o.Rows {
		row := []Cell{words(e.Figure)}
		for _, c := range e.Cells {
			cell := Cell{Text: c.Text}
			if c.Missing {
				cell.Text = none
			} else {
				cell.Value, cell.Unit = &c.High, Unit(e.Unit)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func reach(o report.Outlook) Table {
	t := Table{Caption: "How far that goes. " + o.Host + ".", Columns: []string{"users"}}
	for _, name := range o.Systems {
		t.Columns = append(t.Columns, system(name))
	}
	for _, r := range o.Reach {
		row := []Cell{count(int64(r.Users))}
		for _, c := range r.Cells {
			text := string(c.Fit)
			if c.Why != "" {
				text += ": " + c.Why
			}
			row = append(row, words(text))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

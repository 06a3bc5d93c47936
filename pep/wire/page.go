package wire

import (
	"strconv"

	"pepvault/pep"
)

// decodeMax reads a number; one that no vault can reach stands for the most
// that fits.
func decodeMax(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil && n == 0 { // above the range, n is the highest number
		return 0, pep.Refuse(pep.ErrBadRequest, "a bound is a number from 0")
	}
	return int(n), nil
}

func badSet() error { return pep.Refuse(pep.ErrBadRequest, "<set/> is not as XEP-0059 has it") }

// decodePage reads the <set/> of a request (XEP-0059), nil if there is none.
func decodePage(set *element) (*pep.PageRequest, error) {
	if set == nil {
		return nil, nil
	}
	page := pep.PageRequest{Max: -1}
	bounded, placed := false, false
	for _, c := range set.children {
		if c.name.space != nsRSM {
			continue
		}
		seen := &placed
		if c.name.local == "max" {
			seen = &bounded
		}
		if *seen || len(c.children) > 0 {
			return nil, badSet()
		}
		*seen = true
		if err := setPage(&page, c.name.local, string(c.text)); err != nil {
			return nil, err
		}
	}
	if set.mixed() {
		return nil, badSet()
	}
	return &page, nil
}

func setPage(page *pep.PageRequest, what, text string) error {
	var err error
	switch what {
	case "max":
		page.Max, err = decodeMax(text)
	case "after":
		page.After = text
	case "before":
		page.Before, page.Last = text, text == ""
	case "index":
		var n int
		n, err = decodeMax(text)
		page.Index = &n
	default:
		err = badSet()
	}
	return err
}

func askPage(dst []byte, page *pep.PageRequest) []byte {
	if page == nil {
		return dst
	}
	dst = append(dst, "<set xmlns='"+nsRSM+"'>"...)
	if page.Max >= 0 {
		dst = appendNumber(dst, "max", page.Max)
	}
	switch {
	case page.After != "":
		dst = append(appendText(append(dst, "<after>"...), page.After), "</after>"...)
	case page.Before != "":
		dst = append(appendText(append(dst, "<before>"...), page.Before), "</before>"...)
	case page.Last:
		dst = append(dst, "<before/>"...)
	case page.Index != nil:
		dst = appendNumber(dst, "index", *page.Index)
	}
	return append(dst, "</set>"...)
}

func appendNumber(dst []byte, local string, n int) []byte {
	dst = append(append(append(dst, '<'), local...), '>')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(append(append(dst, "</"...), local...), '>')
}

// appendSet appends the <set/> of a page (XEP-0059).
func appendSet(dst []byte, set *pep.ResultSet) []byte {
	if set == nil {
		return dst
	}
	dst = append(dst, "<set xmlns='"+nsRSM+"'>"...)
	if set.First != "" {
		dst = strconv.AppendInt(append(dst, "<first index='"...), int64(set.Index), 10)
		dst = append(appendText(append(dst, "'>"...), set.First), "</first>"...)
	}
	if set.Last != "" {
		dst = append(appendText(append(dst, "<last>"...), set.Last), "</last>"...)
	}
	return append(appendNumber(dst, "count", set.Count), "</set>"...)
}

// decodeSet reads the <set/> of an answer, nil if there is none.
func decodeSet(parent *element) (*pep.ResultSet, error) {
	e := parent.child(name{nsRSM, "set"})
	if e == nil {
		return nil, nil
	}
	count, err := strconv.Atoi(textOf(e, name{nsRSM, "count"}))
	if err != nil {
		return nil, badReply("<set/> without a count")
	}
	set := pep.ResultSet{Count: count, Last: textOf(e, name{nsRSM, "last"})}
	if first := e.child(name{nsRSM, "first"}); first != nil {
		set.First = string(first.text)
		if set.Index, err = strconv.Atoi(first.attr("index")); err != nil {
			return nil, badReply("<first/> without an index")
		}
	}
	return &set, nil
}

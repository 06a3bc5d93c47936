package client

import (
	"bytes"
	"encoding/gob"
	"encoding/xml"
	"errors"
	"fmt"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

// handle takes in one stanza.
func (s *session) handle(stanza c2s.Stanza) error {
	switch {
	case stanza.Name == "iq" && stanza.ID == s.id && s.id != "" && (stanza.Type == "result" || stanza.Type == "error"):
		if !s.fromService(stanza.From) {
			return nil // an id can be guessed
		}
		return s.answered(stanza)
	case !s.fromService(stanza.From):
		return nil
	case stanza.Name == "message":
		n, err := wire.DecodeMessage(stanza.Raw)
		if err != nil {
			return nil // a bounce, or nothing of ours: a sync tells what is missing
		}
		return s.heard(n)
	case stanza.Name == "presence":
		return s.presence(stanza.Type)
	case stanza.Name == "iq" && stanza.Type == "get":
		return s.inform(stanza)
	case stanza.Name == "iq" && stanza.Type == "set":
		return s.chunk(stanza)
	}
	return nil
}

func (s *session) heard(n wire.Notification) error {
	if n.Node != s.Node {
		return nil
	}
	if n.Deleted {
		s.other = true
	}
	s.r.Heard(n)
	return s.keepLook()
}

// presence answers the service, which comes back, or wants to know who is there.
func (s *session) presence(kind string) error {
	switch {
	case s.mode == Once:
		return nil
	case kind == "":
		s.id, s.start = "", ""
		s.r.Disconnected() // it was away: something may have been missed
		return s.announce()
	case kind == "error" && s.retry < 10:
		s.retry++
		s.again = true
		return s.pause(s.retry)
	}
	return nil
}

// inform answers a disco#info query of the service.
func (s *session) inform(stanza c2s.Stanza) error {
	var asked struct {
		Query *struct {
			Node string `xml:"node,attr"`
		} `xml:"http://jabber.org/protocol/disco#info query"`
	}
	if err := xml.Unmarshal(stanza.Raw, &asked); err != nil || asked.Query == nil {
		header := wire.Header{From: stanza.From, To: stanza.To, ID: stanza.ID, Type: "get", Name: "iq"}
		return s.send(wire.AppendError(nil, header, pep.ErrUnknownNamespace))
	}
	var id bytes.Buffer
	if err := xml.EscapeText(&id, []byte(stanza.ID)); err != nil {
		return err
	}
	info := wire.AppendInfo(nil, asked.Query.Node, s.info())
	return s.send(fmt.Appendf(nil, "<iq type='result' to='%s' id='%s'>%s</iq>", s.Service, &id, info))
}

func (s *session) answered(stanza c2s.Stanza) error {
	answer, err := wire.DecodeReply(stanza.Raw, s.call)
	call := s.call
	s.id = ""
	var refusal *wire.StanzaError
	switch {
	case errors.As(err, &refusal):
		return s.refused(refusal)
	case err != nil:
		s.r.Refused(nil)
		return fmt.Errorf("%s: %w", s.Service, err)
	}
	s.pauses = 0
	switch a := answer.(type) {
	case pep.SyncPage:
		s.page(&a)
		s.r.Answered(a)
		return s.paged(a)
	case pep.DownloadBegun:
		s.begun = a
		s.since = time.Now()
		s.progress(0)
	case pep.Published:
		if op, ok := call.(pep.Publish); ok && op.Batch == nil {
			delete(s.state.Refusals, op.Items[0].ID)
		}
	}
	s.r.Answered(answer)
	return s.keepLook()
}

// chunk takes in a part of a download, and acknowledges it.
func (s *session) chunk(stanza c2s.Stanza) error {
	header := wire.Header{From: stanza.From, To: stanza.To, ID: stanza.ID, Type: "set", Name: "iq"}
	c, err := wire.DecodeChunk(stanza.Raw)
	if err == nil {
		s.page(&c.Page)
		if s.r.Chunk(c) {
			s.since = time.Now()
			s.progress(len(c.Page.Changes))
			if err := s.paged(c.Page); err != nil {
				return err
			}
			return s.send(wire.AppendAck(nil, header))
		}
	}
	return s.send(wire.AppendError(nil, header, wire.ErrUnknownChunk))
}

func (s *session) progress(more int) {
	s.came += more
	if s.Progress != nil {
		s.Progress(s.came, max(s.came, s.begun.Records))
	}
}

// kept is a page of a sync under way, with the cursor that the sync began with.
type kept struct {
	Start string
	Page  pep.SyncPage
}

func (s *session) keepPage(p pep.SyncPage) error {
	if s.joining {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(kept{Start: s.start, Page: p}); err != nil {
		return fmt.Errorf("encode a page: %w", err)
	}
	return s.Store.AddPage(b.Bytes())
}

// replay has the replica take the pages that an earlier session got of the sync
// that it begins now, and returns what it asks then.
func (s *session) replay(op pep.Sync) (*pep.Sync, error) {
	if s.joining || s.astray != "" {
		return &op, nil
	}
	texts, err := s.Store.Pages()
	if err != nil {
		return nil, err
	}
	var pages []pep.SyncPage
	for _, text := range texts {
		var k kept
		if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&k); err != nil || k.Start != op.Cursor || !k.Page.More {
			pages = nil
			break
		}
		pages = append(pages, k.Page)
	}
	if len(pages) == 0 {
		return &op, s.Store.DropPass()
	}
	for _, page := range pages {
		s.page(&page)
		s.r.Answered(page)
		s.came += len(page.Changes)
		next, ok := s.r.Ask().(pep.Sync)
		if !ok { // a page that others follow is asked on
			return nil, errState
		}
		op = next
	}
	s.Logger.Debug("goes on with a sync", "pages", len(pages))
	return &op, nil
}

// noteRefusal keeps why a change was refused, for who has to settle it.
func (s *session) noteRefusal(call wire.Call, err *wire.StanzaError) {
	text := ""
	switch err.Own {
	case "revision-mismatch", "key-version-too-low", "stale":
	default:
		text = err.Error()
	}
	switch op := call.(type) {
	case pep.Publish:
		if op.Batch == nil && text != "" {
			s.state.Refusals[op.Items[0].ID] = text
		}
	case pep.Retract:
		if op.Batch == nil && text != "" {
			s.state.Refusals[op.IDs[0]] = text
		}
	}
}

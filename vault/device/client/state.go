package client

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"pepvault/vault"
	"pepvault/vault/device"
	"pepvault/vault/seal"
)

// state is all that a device keeps of a vault.
type state struct {
	Owner  string // the vault's account; its node is the memory's
	Memory device.Memory
	// Keys are all that the vault had, as far as the device saw, by their ids in
	// hexadecimal: what was changed offline may be sealed with an older one.
	Keys  map[string][]byte
	Names []byte // of the seal.NameKey
	// KeyID and KeyVersion are those of the vault's key record that was verified
	// last, KeyRecord is its text.
	KeyID      seal.KeyID
	KeyVersion uint32
	KeyRecord  []byte
	// Confirmed says that the vault has had that key record, or one after it.
	Confirmed bool
	Next      *next
	Seen      map[string]seen     // of the records that were verified, by id
	Tampered  map[string]tampered // by id
	Refusals  map[string]string   // why the service refused a change, by id
}

// next is what a rotation under way brings.
type next struct {
	Version uint32
	Key     []byte
	// Root and Lock are set if the pass phrase changes with it; Source is where it
	// is read from then on.
	Root   []byte
	Lock   seal.Lock
	Source Source
}

// seen is what was true of a record when it was verified last.
type seen struct {
	Revision   vault.Revision
	Birth      seal.Birth
	Generation uint64
	Digest     [32]byte // of the sealed text
}

// tampered is a record that is not what a device made.
type tampered struct {
	Name   string // as it was, "" if it was never seen
	Reason string
	Good   *device.Record // as it was last when it was good; nil = never
}

// Source says where the pass phrase or the key file is read.
type Source struct {
	Kind seal.LockKind
	File string // "" = a person is asked
}

var errState = errors.New("what is kept can't be read; it was written by another version of the program")

func (s *state) encode() ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return nil, fmt.Errorf("encode the state: %w", err)
	}
	return b.Bytes(), nil
}

func decodeState(text []byte) (*state, error) {
	s := new(state)
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(s); err != nil {
		return nil, errState
	}
	s.fill()
	return s, nil
}

// fill makes the maps, which gob leaves out where they are empty.
func (s *state) fill() {
	if s.Keys == nil {
		s.Keys = map[string][]byte{}
	}
	if s.Seen == nil {
		s.Seen = map[string]seen{}
	}
	if s.Tampered == nil {
		s.Tampered = map[string]tampered{}
	}
	if s.Refusals == nil {
		s.Refusals = map[string]string{}
	}
}

func (s *state) key(id seal.KeyID) (seal.Key, bool) { return seal.KeyFrom(s.Keys[id.String()]) }

func (s *state) addKey(k seal.Key) { s.Keys[k.ID().String()] = bytes.Clone(k.Bytes()) }

func (s *state) names() seal.NameKey {
	k, _ := seal.KeyFrom(s.Names)
	return seal.NameKey(k)
}

// keys are those of the vault as they were verified last; false if none were.
func (s *state) keys() (seal.Keys, bool) {
	k, ok := s.key(s.KeyID)
	return seal.Keys{Records: k, Names: s.names()}, ok && s.Names != nil
}

package seal

import (
	"crypto/cipher"
	"crypto/rand"

	"golang.org/x/crypto/chacha20poly1305"
)

// FileKey seals what a device keeps on its own disk.
type FileKey struct{ secret }

// NewFileKey makes one at random.
func NewFileKey() FileKey { return FileKey(NewKey()) }

// Bytes returns the key itself, for who wraps it under another.
func (k FileKey) Bytes() []byte { return k.secret[:] }

// FileKeyFrom is one that was wrapped; false if it hasn't the length of one.
func FileKeyFrom(kept []byte) (FileKey, bool) {
	k, ok := KeyFrom(kept)
	return FileKey(k), ok
}

// Seal seals text with a nonce that was never used, and binds it to what it is.
func (k FileKey) Seal(what string, text []byte) []byte {
	sealed := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(text)+chacha20poly1305.Overhead)
	_, _ = rand.Read(sealed) // it never fails
	return k.aead().Seal(sealed, sealed, text, []byte(what))
}

// Open opens what Seal made of the same what with the same key; anything else is
// [ErrWrongSecret].
func (k FileKey) Open(what string, sealed []byte) ([]byte, error) {
	if len(sealed) < chacha20poly1305.NonceSizeX {
		return nil, ErrWrongSecret
	}
	nonce, rest := sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:]
	text, err := k.aead().Open(nil, nonce, rest, []byte(what))
	if err != nil {
		return nil, ErrWrongSecret
	}
	return text, nil
}

func (k FileKey) aead() cipher.AEAD { return aeadOf(k.derive("file")) }

func (r Root) aead() cipher.AEAD { return aeadOf(r.derive("keys")) }

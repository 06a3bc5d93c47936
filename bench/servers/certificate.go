package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// certificate is a self-signed certificate in files.
type certificate struct {
	pool      *x509.CertPool
	cert, key string // PEM files
	both      string // both in one file
}

func makeCertificate(dir, domain string) (certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: domain},
		DNSNames:              []string{domain, "*." + domain},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate{}, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return certificate{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return certificate{}, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	c := certificate{
		pool: x509.NewCertPool(),
		cert: filepath.Join(dir, "tls.crt"),
		key:  filepath.Join(dir, "tls.key"),
		both: filepath.Join(dir, "tls.pem"),
	}
	c.pool.AddCert(parsed)
	for path, text := range map[string][]byte{c.cert: certPEM, c.key: keyPEM, c.both: append(keyPEM[:len(keyPEM):len(keyPEM)], certPEM...)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return certificate{}, err
		}
	}
	return c, nil
}

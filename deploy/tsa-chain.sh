#!/bin/sh
# Prints the certificate chain of a time-stamping authority, the signer's first, the root last:
# sh tsa-chain.sh URL [ROOT.pem] > witnesses/tsa-chain.pem. A root that is neither in its answers nor in this machine's list of
# authorities is given as a file. Compare the root's fingerprint, which is shown, with the published one.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: tsa-chain.sh URL [ROOT.pem]" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "tsa-chain.sh: $1" >&2; exit 1; }
name() { openssl x509 -in "$1" -noout "-$2_hash"; }

openssl ts -query -digest "$(openssl rand -hex 32)" -sha256 -cert -out "$work/query" 2> /dev/null
curl -fsS --max-time 30 --max-filesize 1000000 -H 'Content-Type: application/timestamp-query' \
  --data-binary "@$work/query" -o "$work/answer" "$1" || fail "$1 does not answer"
openssl ts -reply -in "$work/answer" -token_out -out "$work/token" > /dev/null 2>&1 || fail "$1 answers no time stamp"
openssl pkcs7 -inform DER -in "$work/token" -print_certs |
  awk -v folder="$work" '
    /BEGIN CERTIFICATE/ { n++; inside = n <= 16 }
    inside { print > (folder "/" n ".pem") }
    /END CERTIFICATE/ { inside = 0 }'

certificate=
for file in "$work"/*.pem; do
  [ -e "$file" ] || fail 'the time stamp has no certificates'
  openssl x509 -in "$file" -noout -ext basicConstraints 2> /dev/null | grep -q CA:TRUE && continue
  openssl x509 -in "$file" -noout -ext extendedKeyUsage 2> /dev/null | grep -q 'Time Stamping' && certificate=$file
done
[ -n "$certificate" ] || fail 'no certificate of the time stamp is for time stamping'

for _ in 1 2 3 4 5 6 7 8; do
  openssl x509 -in "$certificate"
  issuer=$(name "$certificate" issuer)
  if [ "$(name "$certificate" subject)" = "$issuer" ]; then
    openssl x509 -in "$certificate" -noout -subject -fingerprint -sha256 >&2
    exit 0
  fi
  next=
  # A root may be among those of this machine only.
  for file in "$work"/*.pem "${SSL_CERT_DIR:-/etc/ssl/certs}/$issuer.0" "${2:-}"; do
    [ -e "$file" ] && [ "$(name "$file" subject)" = "$issuer" ] && next=$file && break
  done
  [ -n "$next" ] || fail "give the file of $(openssl x509 -in "$certificate" -noout -issuer)"
  certificate=$next
done
fail 'the chain has no end'

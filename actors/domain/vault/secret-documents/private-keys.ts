/** Private keys within the secrets of credentials. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'

const PEM_CHARS_MAX = 16_384
const RSA_BITS_MIN = 2048

/** The signature algorithm of a key (RFC 7518, RFC 8037); null for other keys. */
export function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | null {
  const { modulusLength = 0, namedCurve } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'rsa') return modulusLength >= RSA_BITS_MIN ? 'RS256' : null
  if (asymmetricKeyType === 'ed25519') return 'EdDSA'
  return namedCurve === 'prime256v1' ? 'ES256' : namedCurve === 'secp384r1' ? 'ES384' : null
}

function algorithmIn(pem: string): string | null {
  try {
    return algorithmOf(createPrivateKey(pem))
  } catch {
    return null
  }
}

const pem = z.string().min(1).max(PEM_CHARS_MAX)

export const SigningPem = pem.refine(
  (text) => algorithmIn(text) !== null,
  'Must be a PEM private key: RSA of 2048 bits or more, EC P-256 or P-384, or Ed25519.',
)

export const RsaPem = pem.refine(
  (text) => algorithmIn(text) === 'RS256',
  'Must be a PEM private key: RSA of 2048 bits or more.',
)

/** Validation of certificate requests. All functions are pure (docs/reference/vault.md). */
import { normalizeHostname } from '../../domain/hostnames.js'
import { isUuid } from '../../domain/ids.js'
import type { CertificateName } from '../../domain/vault/certificate-name.js'
import { isNetwork, networkContains } from '../../domain/commerce/networks.js'
import type { SignCertificate, SshInvalid } from './protocol.js'
import { invalid } from '../../domain/entities/messages.js'

const PRINCIPALS_MAX = 16
const PRINCIPAL = /^[A-Za-z0-9._@-]{1,64}$/
const COMMAND = /^\P{Cc}{1,1024}$/u
const SERIAL = /^[1-9][0-9]{0,19}$/
const SERIAL_MAX = 2n ** 64n - 1n

type SshLimits = {
  readonly defaultValiditySecs: number
  readonly maxValiditySecs: number
}

export type CertificateTerms = {
  readonly targetHost: string
  readonly principals: readonly string[]
  readonly validitySecs: number
}

/** The normalized request, or its first fault. */
export function judgeRequest(
  request: SignCertificate,
  limits: SshLimits,
): CertificateTerms | SshInvalid {
  const { principals, sourceAddresses, forceCommand } = request
  const validitySecs = request.validitySecs ?? limits.defaultValiditySecs
  const targetHost = normalizeHostname(request.targetHost)
  if (targetHost === null) return invalid('/target_host', 'Must be a host name without a port.')
  // A certificate without principals would be valid for every user.
  if (principals.length === 0 || principals.length > PRINCIPALS_MAX) {
    return invalid('/principals', `Must contain 1 to ${PRINCIPALS_MAX} user names.`)
  }
  const invalidPrincipal = principals.findIndex((name) => !PRINCIPAL.test(name))
  if (invalidPrincipal >= 0) {
    return invalid(`/principals/${invalidPrincipal}`, 'Must be 1 to 64 of A-Z a-z 0-9 . _ @ -')
  }
  if (validitySecs < 1 || validitySecs > limits.maxValiditySecs) {
    return invalid('/validity_seconds', `Must be 1 to ${limits.maxValiditySecs} seconds.`)
  }
  const invalidSource = sourceAddresses.findIndex((source) => !isNetwork(source))
  if (invalidSource >= 0) {
    const detail = 'Must be a network such as 10.1.0.0/16.'
    return invalid(`/source_addresses/${invalidSource}`, detail)
  }
  if (forceCommand !== null && !COMMAND.test(forceCommand)) {
    return invalid('/force_command', 'Must be one line of up to 1024 characters.')
  }
  return { targetHost, principals: [...new Set(principals)], validitySecs }
}

/**
 * The source addresses of a certificate: the requested ones, which must lie within the networks of the authority's
 * metadata. Undefined when they do not.
 */
export function sourcesWithin(
  authority: readonly string[],
  requested: readonly string[],
): readonly string[] | undefined {
  if (requested.length === 0) return authority
  if (authority.length === 0) return requested
  const inside = (source: string) => authority.some((network) => networkContains(network, source))
  return requested.every(inside) ? requested : undefined
}

/** The name of certificates to revoke; undefined when no certificate has such a name. */
export function readName(by: CertificateName, value: string): string | undefined {
  if (by === 'serial') return SERIAL.test(value) && BigInt(value) <= SERIAL_MAX ? value : undefined
  if (by === 'delegation_id') return isUuid(value) ? value : undefined
  return value
}

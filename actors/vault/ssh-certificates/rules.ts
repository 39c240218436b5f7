/** What may be asked of an authority. decisions.md 6, 18, 22. */
import { normalizeHostname } from '../../domain/hostnames.js'
import { isNetwork, networkContains } from '../../domain/commerce/networks.js'
import type { SignCertificate, SshInvalid } from './protocol.js'

const PRINCIPALS_MAX = 16
const PRINCIPAL = /^[A-Za-z0-9._@-]{1,64}$/
const COMMAND = /^\P{Cc}{1,1024}$/u
const SERIAL = /^[1-9][0-9]{0,19}$/
const SERIAL_MAX = 2n ** 64n - 1n

export type SshLimits = {
  readonly defaultValiditySecs: number
  readonly maxValiditySecs: number
}

export type CertificateTerms = {
  readonly targetHost: string
  readonly principals: readonly string[]
  readonly validitySecs: number
}

/** The request in its normalized form, or what is wrong with it. */
export function judgeRequest(
  request: SignCertificate,
  limits: SshLimits,
): CertificateTerms | SshInvalid {
  const { principals, sourceAddresses, forceCommand } = request
  const validitySecs = request.validitySecs ?? limits.defaultValiditySecs
  const targetHost = normalizeHostname(request.targetHost)
  if (targetHost === null) return invalid('/target_host', 'A host name, without a port.')
  // No principals at all would make the certificate one for any user.
  if (principals.length === 0 || principals.length > PRINCIPALS_MAX) {
    return invalid('/principals', `Between 1 and ${PRINCIPALS_MAX} user names.`)
  }
  const odd = principals.findIndex((name) => !PRINCIPAL.test(name))
  if (odd >= 0) return invalid(`/principals/${odd}`, 'Up to 64 of A-Z a-z 0-9 . _ @ -')
  if (validitySecs < 1 || validitySecs > limits.maxValiditySecs) {
    return invalid('/validity_seconds', `Between 1 and ${limits.maxValiditySecs} seconds.`)
  }
  const stray = sourceAddresses.findIndex((source) => !isNetwork(source))
  if (stray >= 0) return invalid(`/source_addresses/${stray}`, 'A network such as 10.1.0.0/16.')
  if (forceCommand !== null && !COMMAND.test(forceCommand)) {
    return invalid('/force_command', 'One line of up to 1024 characters.')
  }
  return { targetHost, principals: [...new Set(principals)], validitySecs }
}

/**
 * Where a certificate may be used from: what the authority's metadata asks for, and within that
 * what the caller asks for. Undefined when the caller asks for more.
 */
export function sourcesWithin(
  authority: readonly string[],
  asked: readonly string[],
): readonly string[] | undefined {
  if (asked.length === 0) return authority
  if (authority.length === 0) return asked
  const inside = (source: string) => authority.some((network) => networkContains(network, source))
  return asked.every(inside) ? asked : undefined
}

/** A serial as we write it; undefined when it is none. */
export function readSerial(text: string): string | undefined {
  return SERIAL.test(text) && BigInt(text) <= SERIAL_MAX ? text : undefined
}

function invalid(pointer: string, detail: string): SshInvalid {
  return { tag: 'invalid', pointer, detail }
}

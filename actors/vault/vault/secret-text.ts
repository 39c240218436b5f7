/** The text of a secret as it is stored: a request may state a JSON document as an object. */
import type { Credential } from '../../domain/entities/vault.js'
import { isTokenScheme } from '../../domain/vault/egress.js'
import { documentFault, hasSecretDocument } from '../../domain/vault/secret-documents/documents.js'
import { parseStrictJson } from '../../platform/jose/strict-json.js'
import { type FaultOf, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import type { Secret, VaultInvalid } from './protocol.js'
import { invalid, isTokenUrl, secretFault } from './rules.js'
import { isOnAllowedHost, readTokenSource, tokenUrlOf } from './token-source.js'

const DEPTH_MAX = 16

type Owner = Pick<Credential, 'credentialType' | 'authScheme' | 'allowedHosts'>

/** The text, or what is wrong with the secret. The detail never quotes it. */
export function secretText(
  { credentialType: type, authScheme, allowedHosts }: Owner,
  secret: Secret,
  urlFaultOf: FaultOf,
): string | VaultInvalid {
  const isDocument = hasSecretDocument(authScheme)
  if (typeof secret !== 'string' && !isDocument && type !== 'oauth2')
    return invalid('/secret', 'Must be a string for this auth_scheme.')
  const text = typeof secret === 'string' ? secret : JSON.stringify(secret)
  const fault = secretFault(type, authScheme, text, urlFaultOf)
  if (fault !== undefined || !isDocument) return fault ?? text
  const document = parseStrictJson(Buffer.from(text, 'utf8'), DEPTH_MAX)
  if (document === undefined)
    return invalid('/secret', `Must be a JSON object for auth_scheme ${authScheme}.`)
  const inside = documentFault(authScheme, document)
  if (inside !== undefined) return invalid(inside.pointer, inside.detail)
  const outside = isTokenScheme(authScheme)
    ? tokenUrlFault(authScheme, text, allowedHosts, urlFaultOf)
    : undefined
  return outside ?? text
}

/** The host that gives the tokens must be an allowed one, so that secrets are sent to no other. */
function tokenUrlFault(
  scheme: string,
  text: string,
  allowedHosts: readonly string[],
  urlFaultOf: FaultOf,
): VaultInvalid | undefined {
  const source = readTokenSource(scheme, Buffer.from(text, 'utf8'))
  const { url, member } = tokenUrlOf(source)
  const pointer = `/secret/${member}`
  if (!isTokenUrl(url)) return invalid(pointer, 'Must be an https URL.')
  const prohibited = urlFaultOf(url)
  if (prohibited !== undefined) return invalid(pointer, URL_FAULTS[prohibited])
  return isOnAllowedHost(source, allowedHosts)
    ? undefined
    : invalid(pointer, 'Must be on one of the allowed_hosts.')
}

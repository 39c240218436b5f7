/** The text of a secret as it is stored: a request may state a JSON document as an object. */
import type { CredentialType } from '../../domain/entities/vault.js'
import { documentFault, hasSecretDocument } from '../../domain/vault/secret-documents/documents.js'
import type { FaultOf } from '../../platform/outbound-http/targets.js'
import type { Secret, VaultInvalid } from './protocol.js'
import { invalid, secretFault } from './rules.js'

/** The text, or what is wrong with the secret. The detail never quotes it. */
export function secretText(
  type: CredentialType,
  authScheme: string,
  secret: Secret,
  urlFaultOf: FaultOf,
): string | VaultInvalid {
  const isDocument = hasSecretDocument(authScheme)
  if (typeof secret !== 'string' && !isDocument && type !== 'oauth2')
    return invalid('/secret', 'Must be a string for this auth_scheme.')
  const text = typeof secret === 'string' ? secret : JSON.stringify(secret)
  const fault = secretFault(type, authScheme, text, urlFaultOf)
  if (fault !== undefined || !isDocument) return fault ?? text
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return invalid('/secret', `Must be a JSON object for auth_scheme ${authScheme}.`)
  }
  const inside = documentFault(authScheme, document)
  return inside === undefined ? text : invalid(inside.pointer, inside.detail)
}

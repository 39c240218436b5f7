/** The rate limit key of a request to an OAuth endpoint: the unverified client id and the address. */
import { asId } from '../../actors/domain/ids.js'
import { quotaAddress } from '../../actors/domain/quota-address.js'
import type { Credentials, FormFields } from '../route.js'

const BASIC_CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2})$/i

/** The client id of the Basic header or the form, and the address: a stranger can write the id of any client. */
export function presentedClient(
  { authorization }: Credentials,
  fields: FormFields,
  clientAddress: string,
): string {
  return `${namedClient(authorization, fields)} ${quotaAddress(clientAddress)}`
}

/** The client id of the Basic header or the form, unverified. Empty without one. */
export function namedClient(authorization: string | null, fields: FormFields): string {
  const encoded = BASIC_CREDENTIALS.exec(authorization ?? '')?.[1] ?? ''
  const [encodedId = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  const basicId = decodedOr(encodedId)
  const formId = fields.find(([name]) => name === 'client_id')?.[1]
  return basicId || formId || ''
}

/**
 * Decodes a client_id of a Basic header, which is form-encoded (RFC 6749 section 2.3.1), so that all spellings are
 * one client. @returns `text` if it cannot be decoded: no client has that id.
 */
export function decodedOr(text: string): string {
  try {
    return asId(decodeURIComponent(text.replaceAll('+', ' ')))
  } catch {
    return text
  }
}

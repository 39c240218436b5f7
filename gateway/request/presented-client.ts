/** The unverified client id of a request to an OAuth endpoint, for the log. */
import { asId } from '../../actors/domain/ids.js'
import type { FormFields } from '../route.js'

const BASIC_CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2})$/i

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

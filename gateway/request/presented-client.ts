/** Whose quota a request of an OAuth endpoint uses: the client it names, whether or not it is one. */
import { asId } from '../../actors/domain/ids.js'
import type { Credentials, FormFields } from '../route.js'

const BASIC_CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2})$/i

/** The client id of the Basic header or the form; the address where neither names one. */
export function presentedClient(
  { authorization }: Credentials,
  fields: FormFields,
  clientAddress: string,
): string {
  const encoded = BASIC_CREDENTIALS.exec(authorization ?? '')?.[1] ?? ''
  const [encodedId = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  const basicId = decodedOr(encodedId)
  const formId = fields.find(([name]) => name === 'client_id')?.[1]
  return basicId || formId || `address ${clientAddress}`
}

/**
 * A client_id in a Basic header is form-encoded (RFC 6749 section 2.3.1): however it is spelt, it is one
 * client. What cannot be decoded is nobody's.
 */
export function decodedOr(text: string): string {
  try {
    return asId(decodeURIComponent(text.replaceAll('+', ' ')))
  } catch {
    return text
  }
}

/** What an approval of a call covers: everything that is sent upstream, without the credential. */
import { sha256Hex } from '../../platform/call-approvals.js'
import type { AdmissionRequest } from './admission/admission.js'
import { withPlainQuotes } from './admission/rules.js'
import type { ProxyRequest } from './protocol.js'
import type { Outgoing } from './sending.js'

const NO_BODY = new Uint8Array()

/** The admission of the whole call. The order of fields with different names means nothing (RFC 9110 section 5.3). */
export function withCall(
  asked: AdmissionRequest,
  { method, url: sent }: ProxyRequest,
  { url, headers }: Pick<Outgoing, 'url' | 'headers'>,
  body: Uint8Array | null,
): AdmissionRequest {
  const query = withPlainQuotes(url.search, sent)
  const bodySha256 = sha256Hex(body ?? NO_BODY)
  const bodyBytes = body?.byteLength ?? 0
  const fields = headers.toSorted(([name], [other]) => (name < other ? -1 : name > other ? 1 : 0))
  const parts = [
    asked.credentialId,
    method,
    url.origin + url.pathname + query,
    JSON.stringify(fields),
    bodySha256,
  ]
  const { hostname: host, pathname: path } = url
  const shown = { method, host, path, query, bodySha256, bodyBytes }
  return { ...asked, call: { ...asked.call, bodyBytes }, toApprove: { parts, shown } }
}

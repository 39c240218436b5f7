/** Calls that a signing scheme refuses before they are admitted. Pure. */
import type { SignedScheme } from '../../../domain/vault/egress.js'
import type { HeaderPair } from '../protocol.js'

type Call = { readonly url: URL; readonly headers: readonly HeaderPair[] }
type Fault = { readonly pointer: '/url' | '/headers'; readonly detail: string }

const CALL_FAULTS: { readonly [S in SignedScheme]?: (call: Call) => Fault | undefined } = {
  aws_sigv4: awsFault,
}

export const signedCallFault = (scheme: SignedScheme, call: Call) => CALL_FAULTS[scheme]?.(call)

/** Parameters of a pre-signed URL. The last is the one of earlier versions of S3. */
const PRESIGNED =
  /^(?:x-amz-(?:algorithm|credential|date|expires|security-token|signature|signedheaders)|awsaccesskeyid)$/i

function awsFault({ url, headers }: Call): Fault | undefined {
  if ([...url.searchParams.keys()].some((name) => PRESIGNED.test(name)))
    return { pointer: '/url', detail: 'The URL is signed already. The service signs the headers.' }
  const isChunked = headers.some(([name, value]) => {
    const plain = name.toLowerCase().replaceAll('_', '-')
    if (plain === 'x-amz-content-sha256') return /^\s*streaming-/i.test(value)
    return plain === 'content-encoding' && /\baws-chunked\b/i.test(value)
  })
  if (!isChunked) return undefined
  return {
    pointer: '/headers',
    detail:
      'A body that is signed in chunks (STREAMING-…) is not supported. In an SDK, set ' +
      'request_checksum_calculation to when_required (AWS_REQUEST_CHECKSUM_CALCULATION).',
  }
}

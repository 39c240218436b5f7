/** Parses multipart/form-data (RFC 7578) as browsers send a form with one file. */
import { mediaTypeOf } from '../headers/accept.js'
import type { UploadedForm } from '../route.js'

const PARTS_MAX = 8
/** RFC 2046 section 5.1.1: a boundary has at most 70 characters, after two hyphens. */
const DELIMITER = /^--[0-9A-Za-z'()+_,./:=? -]{1,70}$/
const HEAD_BYTES_MAX = 1024
const FIELD_BYTES_MAX = 1024

/**
 * The body names its own boundary in its first line. Browsers send nothing before it (RFC 7578 section 4.1).
 * @returns null if the body is malformed, or if a field occurs twice.
 */
export function parseUpload(body: Uint8Array): UploadedForm | null {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const firstEnd = bytes.subarray(0, 128).indexOf('\r\n')
  const delimiter = bytes.subarray(0, Math.max(0, firstEnd)).toString('latin1')
  if (!DELIMITER.test(delimiter)) return null
  const separator = `\r\n${delimiter}`
  let csrfToken: string | null = null
  let file: UploadedForm['file'] = null
  let files = 0
  let at = firstEnd + 2
  for (let parts = 0; parts < PARTS_MAX; parts += 1) {
    const headEnd = bytes.indexOf('\r\n\r\n', at)
    const end = bytes.indexOf(separator, headEnd + 2)
    if (headEnd < 0 || headEnd - at > HEAD_BYTES_MAX || end < headEnd + 4) return null
    const head = bytes.subarray(at, headEnd).toString('utf8')
    const content = bytes.subarray(headEnd + 4, end)
    const name = /^content-disposition: *form-data;(?:.*;)? *name="([^"]*)"/im.exec(head)?.[1]
    if (name === 'csrf_token') {
      if (csrfToken !== null || content.length > FIELD_BYTES_MAX) return null
      csrfToken = content.toString('utf8')
    }
    if (name === 'file') {
      files += 1
      const type = mediaTypeOf(/^content-type: *([^\r\n]+)/im.exec(head)?.[1])
      // A browser sends an empty file without a name where the user chose none.
      if (content.length > 0)
        file = { mediaType: type ?? 'application/octet-stream', bytes: content }
    }
    at = end + separator.length
    const next = bytes.subarray(at, at + 2).toString('latin1')
    if (next === '--') return files > 1 ? null : { csrf_token: csrfToken ?? '', file }
    if (next !== '\r\n') return null
    at += 2
  }
  return null
}

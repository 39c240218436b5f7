/** QR codes as inline images. */
import { encodeQR } from 'qr'

/**
 * Inline, because the content may be a secret, which must not appear in a request URL.
 * @param words the label.
 */
export function pictureOf(uri: string, words: string): string {
  const label = words.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const svg = encodeQR(uri, 'svg', { ecc: 'medium', border: 4 })
  return svg.replace('<svg ', `<svg class="qr" role="img" aria-label="${label}" `)
}

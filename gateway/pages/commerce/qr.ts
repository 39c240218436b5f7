/** QR codes as pictures inside of a page. */
import { encodeQR } from 'qr'

/** Inline: a secret in a picture must not be a request that somebody logs. @param words its label. */
export function pictureOf(uri: string, words: string): string {
  const label = words.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const svg = encodeQR(uri, 'svg', { ecc: 'medium', border: 4 })
  return svg.replace('<svg ', `<svg class="qr" role="img" aria-label="${label}" `)
}

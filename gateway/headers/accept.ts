/** True if Accept admits a media type (RFC 9110 section 12.5.1). */
export function accepts(accept: string | undefined, mediaType: string): boolean {
  if (accept === undefined || accept === '' || accept === '*/*') return true
  const [type = ''] = mediaType.split('/')
  let best = -1
  let admitted = false
  for (const element of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = element.split(';').map((part) => part.trim())
    const rank = range === mediaType ? 2 : range === `${type}/*` ? 1 : range === '*/*' ? 0 : -1
    if (rank < best || rank < 0) continue
    best = rank
    admitted = !parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))
  }
  return admitted
}

/** The media type of Content-Type without parameters, lower case, or null. */
export function mediaTypeOf(contentType: string | undefined): string | null {
  if (contentType === undefined) return null
  const end = contentType.indexOf(';')
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}

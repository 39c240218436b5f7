import Negotiator from 'negotiator'

/**
 * Whether Accept admits one of the media types (RFC 9110 section 12.5.1). Parameters of a media range do not
 * count: clients add `charset` or a profile to `application/json` and take it without them.
 */
export function accepts(accept: string | undefined, mediaTypes: readonly string[]): boolean {
  if (accept === undefined || accept === '' || accept === '*/*') return true
  // Most clients name the media type and no weights, which needs no negotiation.
  if (!accept.includes(';') && accept.split(',').some((one) => mediaTypes.includes(one.trim())))
    return true
  const ranges = accept.replaceAll(/;(?!\s*q=)[^;,]*/gi, '')
  return new Negotiator({ headers: { accept: ranges } }).mediaTypes(mediaTypes).length > 0
}

/** The media type of Content-Type without parameters, lower case, or null. */
export function mediaTypeOf(contentType: string | undefined): string | null {
  if (contentType === undefined) return null
  const end = contentType.indexOf(';')
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}

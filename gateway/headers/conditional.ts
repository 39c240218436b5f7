/** Evaluates If-None-Match by weak comparison with one entity tag (RFC 9110 section 13.1.2). */
export function noneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return true
  if (ifNoneMatch.trim() === '*') return false
  const opaque = etag.replace(/^W\//, '')
  return !ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === opaque)
}

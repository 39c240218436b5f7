/** If-Match by weak comparison: all tags of SCIM resources are weak (RFC 7644 section 3.14). */
export function isMatch(ifMatch: string | null, version: string): boolean {
  if (ifMatch === null || ifMatch.trim() === '*') return true
  return ifMatch.split(',').some((tag) => bare(tag) === bare(version))
}

const bare = (tag: string): string => tag.trim().replace(/^W\//, '')

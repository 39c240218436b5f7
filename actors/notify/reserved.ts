/** Domains that belong to nobody: fixture users live there, and no mail ever goes there. */

/** RFC 6761 section 6: test, invalid, localhost, example; RFC 2606 section 3: the second level. */
const RESERVED = /(?:^|\.)(?:test|invalid|localhost|example|example\.(?:com|net|org))$/

export function isReservedDomain(email: string): boolean {
  const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
  return RESERVED.test(domain.endsWith('.') ? domain.slice(0, -1) : domain)
}

/** Reserved domains: fixture users have addresses there, and mail servers do not deliver there. */
import { domainOfEmail } from '../../domain/email.js'

/** RFC 6761 section 6: test, localhost, example; RFC 2606 section 3: the second level. */
const RESERVED = /(?:^|\.)(?:test|localhost|example|example\.(?:com|net|org))$/
/** RFC 6761 section 6.4: a name that is always invalid. */
const INVALID = /(?:^|\.)invalid$/

/** For documentation and tests: mail is written to the log or sent to a catcher only. */
export function isReserved(email: string): boolean {
  return RESERVED.test(domainOfEmail(email))
}

/** Mail is never sent. */
export function isUndeliverable(email: string): boolean {
  return INVALID.test(domainOfEmail(email))
}

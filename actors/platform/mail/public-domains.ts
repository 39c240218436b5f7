/** Addresses and domains of mail that are public names. */
import { domainOfEmail, type Email, mailDomain, parseEmail } from '../../domain/email.js'
import { isPublicName } from '../outbound-http/targets.js'

/** An address that an account may have, at a public domain name; undefined for anything else. */
export function readEmail(value: unknown): Email | undefined {
  const email = typeof value === 'string' ? parseEmail(value) : undefined
  return email === undefined || domainOf(email) === undefined ? undefined : email
}

/** The domain of an address; undefined unless it is a public domain name. */
export function domainOf(email: Email): string | undefined {
  const domain = domainOfEmail(email)
  return isPublicName(domain) ? domain : undefined
}

/** Lower case, A-labels, no trailing dot. */
export function readDomain(text: string): string | undefined {
  const domain = mailDomain(text.trim().replace(/\.$/, ''))
  return domain !== undefined && isPublicName(domain) ? domain : undefined
}

/**
 * E-mail addresses, as far as it matters: one at sign, a domain with a dot, nothing that confuses: neither
 * control characters nor the two letters of which lower case makes ASCII (storage/identity/email-keys.ts).
 */
const ADDRESS =
  /^[^\s@"(),:;<>[\\\]\p{C}\u0130\u212a]{1,64}@[^\s@"(),:;<>[\\\]\p{C}\u0130\u212a]+\.[^\s@".(),:;<>[\\\]\p{C}\u0130\u212a]+$/u
const LENGTH_MAX = 254

/** Whether an account, or a buyer, may have the address: whoever takes one in asks this. */
export function isEmail(text: string): boolean {
  return text.length <= LENGTH_MAX && ADDRESS.test(text)
}

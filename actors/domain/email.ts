/** E-mail addresses, as far as it matters: one at sign, a domain with a dot, nothing that confuses. */
const ADDRESS = /^[^\s@"(),:;<>[\\\]]{1,64}@[^\s@"(),:;<>[\\\]]+\.[^\s@".(),:;<>[\\\]]+$/
const LENGTH_MAX = 254

export function isEmail(text: string): boolean {
  return text.length <= LENGTH_MAX && ADDRESS.test(text)
}

/** HTTP message signatures (RFC 9421) and digests of content (RFC 9530). */
import { createHash, type KeyObject, sign } from 'node:crypto'

/** A component with its parameters, such as `"@authority"`, and its value. */
export type Component = readonly [identifier: string, value: string]

/** Parameters of a signature in their order. Numbers are integers; texts have no quotes and no backslashes. */
export type SignatureParameters = Readonly<Record<string, string | number>>

/** Values of `Signature-Input` and `Signature` without their label. */
export type HttpSignature = { readonly input: string; readonly signature: string }

export function httpSignature(
  privateKey: KeyObject,
  components: readonly Component[],
  parameters: SignatureParameters,
): HttpSignature {
  const input = signatureInput(components, parameters)
  const base = Buffer.from(signatureBase(components, input), 'latin1')
  return { input, signature: `:${sign(null, base, privateKey).toString('base64')}:` }
}

/** RFC 9421 section 2.3. */
export function signatureInput(
  components: readonly Component[],
  parameters: SignatureParameters,
): string {
  const covered = components.map(([identifier]) => identifier).join(' ')
  const rest = Object.entries(parameters).map(
    ([name, value]) => `;${name}=${typeof value === 'number' ? value : `"${value}"`}`,
  )
  return `(${covered})${rest.join('')}`
}

/** RFC 9421 section 2.5. */
export function signatureBase(components: readonly Component[], input: string): string {
  const lines = components.map(([identifier, value]) => `${identifier}: ${value}`)
  return [...lines, `"@signature-params": ${input}`].join('\n')
}

export const contentDigest = (content: Uint8Array): string =>
  `sha-256=:${createHash('sha256').update(content).digest('base64')}:`

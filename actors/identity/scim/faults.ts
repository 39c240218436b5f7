/** Refusals of SCIM requests (RFC 7644 section 3.12). */

/** The values of `scimType` that this service sends (RFC 7644, table 9). */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness'

export type ScimRefusal = {
  readonly tag: 'refused'
  readonly status: 400 | 403 | 404 | 409 | 412 | 503
  readonly scimType: ScimType | null
  readonly detail: string
}

/** Ends the work on a request. Its transaction is rolled back, and the caller gets the refusal. */
export class ScimFault extends Error {
  readonly refusal: ScimRefusal

  constructor(status: ScimRefusal['status'], scimType: ScimType | null, detail: string) {
    super(detail)
    this.name = 'ScimFault'
    this.refusal = { tag: 'refused', status, scimType, detail }
  }
}

/** A fault of status 400. */
export function invalid(scimType: ScimType, detail: string): ScimFault {
  return new ScimFault(400, scimType, detail)
}

/** Runs `work` and returns the refusal of a fault. @throws any other error. */
export async function refusing<T>(work: () => Promise<T>): Promise<T | ScimRefusal> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ScimFault) return error.refusal
    throw error
  }
}

/** An answer that is awaited. */
export type Reply<Answer> = Promise<Answer> & {
  /** @throws with the body, for another status or another code of the problem. */
  gives(status: number, error?: string): Promise<Answer>
}

type Answered = {
  readonly status: number
  readonly body?: Record<string, unknown>
  readonly html?: string
}

export function replyOf<Answer extends Answered>(answer: Promise<Answer>): Reply<Answer> {
  return Object.assign(answer, {
    async gives(status: number, error?: string) {
      const found = await answer
      const isExpected = error === undefined || found.body?.['error'] === error
      if (found.status === status && isExpected) return found
      const wanted = error === undefined ? status : `${status} ${error}`
      const what = found.html ?? JSON.stringify(found.body)
      throw new Error(`${found.status}: ${what}, not ${wanted}`)
    },
  })
}

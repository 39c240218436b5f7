/**
 * Shares reads: callers that come while a read runs share the next one. So each sees what was stored before its call, and a
 * key costs one read at a time, however many callers it has.
 */
export function joined<Value>(): (key: string, read: () => Promise<Value>) => Promise<Value> {
  const runs = new Map<
    string,
    { readonly running: Promise<Value>; next: Promise<Value> | undefined }
  >()
  const begin = (key: string, read: () => Promise<Value>): Promise<Value> => {
    const run = { running: read(), next: undefined }
    runs.set(key, run)
    const over = () => {
      if (run.next === undefined) runs.delete(key)
    }
    run.running.then(over, over)
    return run.running
  }
  return (key, read) => {
    const run = runs.get(key)
    if (run === undefined) return begin(key, read)
    const again = () => begin(key, read)
    return (run.next ??= run.running.then(again, again))
  }
}

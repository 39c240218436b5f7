/**
 * Lets what is asked for in one turn of the event loop be done in a row at its end. A signature on
 * P-256 reads a table of 150 KiB from its beginning to its end; between the work of two requests that
 * is fetched anew each time, while the next signature finds it in the cache.
 */
export function turnEnds(): () => Promise<void> {
  let end: Promise<void> | undefined
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = undefined
        resolve()
      })
    })
    return end
  }
}

/** A bar on standard error for a command that works for long, where standard error is a terminal. */

/** Tells how much is done. The bar ends with the last part. */
export type Progress = (done: number, all: number) => void

const CELLS = 24
/** Between two drawings. */
const REDRAWN_MS = 100

/** @param label what is counted, such as `tables` */
export function progressBar(
  label: string,
  out: Pick<NodeJS.WriteStream, 'write'> & { readonly isTTY?: boolean } = process.stderr,
): Progress {
  let drawnAt = 0
  return (done, all) => {
    const isOver = done >= all
    if (out.isTTY !== true || all === 0) return
    if (!isOver && performance.now() - drawnAt < REDRAWN_MS) return
    drawnAt = performance.now()
    const full = Math.floor((CELLS * done) / all)
    const bar = '█'.repeat(full) + '░'.repeat(CELLS - full)
    // A line of the log overwrites the bar.
    out.write(`\u001b[K${isOver ? '' : `${bar} ${done} of ${all} ${label}\r`}`)
  }
}

// The stream: what the console tells, for as long as the page is seen.

const retry = 3000; // ms until the next try, where the browser does not try of its own accord
const full = 30_000; // ms until the next try of a page that had to go for another one
const silent = 40_000; // ms without a word after which a stream counts as dead: the console says something every 15 s

/**
 * Opens a stream, and calls tell with each message and how with "live", "resting", "lost" or "full". A page that nobody sees
 * has no stream, so that the console asks Redis nothing for it. It returns a function that ends the stream.
 */
export function open(path, tell, how) {
  let source = null,
    timer = 0;

  const begin = () => {
    end();
    source = new EventSource(path);
    source.onmessage = (message) => {
      const told = JSON.parse(message.data);
      clearTimeout(timer);
      if (told.full) {
        end();
        how("full");
        timer = setTimeout(again, full);
        return;
      }
      timer = setTimeout(begin, silent);
      how("live");
      tell(told);
    };
    source.onerror = () => {
      how("lost");
      if (source?.readyState === EventSource.CLOSED) {
        clearTimeout(timer);
        timer = setTimeout(again, retry);
      }
    };
  };
  const again = async () => {
    const answer = await fetch("/session").catch(() => null);
    if (answer?.status === 401)
      location.reload(); // it leads to the form for the token
    else if (!document.hidden) begin();
  };
  const end = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const seen = () => {
    if (!document.hidden) begin();
    else {
      end();
      how("resting");
    }
  };
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    end();
  };
}

// How fast Redisson is at what Holdfast is measured at.

package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateIntervalUnit;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/**
 * Bench measures one thing, again and again: it prints "ready" when it has connected.
 * Then it reads lines "NAME WARM MILLIS". For each it works at that name, does not count
 * the first WARM ms, counts during MILLIS more, and prints one line of JSON. It ends with
 * its input. Several of it may work at one name, and so begin together. Clients of one
 * share no connection and no subscription.
 *
 * <pre>
 * ADDRESS pairs KIND THREADS              lock and unlock, each thread its own name
 * ADDRESS handoff KIND give|take SOCKET   from unlock in one process to lock in the other
 * ADDRESS contended KIND CLIENTS THREADS  one name, threads in all
 * ADDRESS semaphore PERMITS CLIENTS THREADS
 * ADDRESS rw READS CLIENTS THREADS        one name, READS of a hundred are reads
 * ADDRESS latch CLIENTS WAITERS           from the last count-down to the last waiter awake
 * </pre>
 *
 * What is left in Redis stays there.
 */
final class Bench {
    /** For how long no thread ends before those that are left count as stuck. */
    private static final long PATIENCE_MILLIS = 5_000;

    private final String address;
    private final List<RedissonClient> clients = new ArrayList<>();
    private String fields = "";

    private Bench(String address) {
        this.address = address;
    }

    /** Work is what each thread does over and over. */
    private interface Work {
        void once() throws Exception;
    }

    /** Worker makes the work of the i-th thread. */
    private interface Worker {
        Work of(int i);
    }

    /** Window is one measurement. */
    private interface Window {
        void measure(String name, long warm, long millis) throws Exception;
    }

    static void main(String[] args) throws Exception {
        Bench bench = new Bench(args[0]);
        Window window = bench.prepare(args[1], Arrays.copyOfRange(args, 2, args.length));
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            bench.fields = "";
            window.measure(words[0], Long.parseLong(words[1]), Long.parseLong(words[2]));
            System.out.printf(Locale.ROOT, "{\"redisson\":\"%s\"%s}%n",
                RedissonClient.class.getPackage().getImplementationVersion(), bench.fields);
        }
    }

    private Window prepare(String what, String[] args) throws Exception {
        return switch (what) {
            case "pairs" -> pairs(args[0], number(args, 1));
            case "handoff" -> handoff(args[0], args[1].equals("give"), Path.of(args[2]));
            case "contended" -> contended(args[0], number(args, 1), number(args, 2));
            case "semaphore" -> semaphore(number(args, 0), number(args, 1), number(args, 2));
            case "rw" -> readWrite(number(args, 0), number(args, 1), number(args, 2));
            case "latch" -> latch(number(args, 0), number(args, 1));
            case "limiter" -> limiter(number(args, 0), number(args, 1), number(args, 2), number(args, 3) == 1);
            default -> throw new IllegalArgumentException(what);
        };
    }

    private Window pairs(String kind, int threads) throws Exception {
        connect(1, threads);
        return (name, warm, millis) -> measure(threads, warm, millis, i -> {
            RLock lock = Commands.lockOf(clients.get(0), kind, name + ":" + i);
            return () -> {
                lock.lock();
                lock.unlock();
            };
        });
    }

    private Window contended(String kind, int count, int threads) throws Exception {
        connect(count, threads);
        return (name, warm, millis) -> measure(threads, warm, millis, i -> {
            RLock lock = Commands.lockOf(clients.get(i % count), kind, name);
            return () -> {
                lock.lock();
                lock.unlock();
            };
        });
    }

    private Window semaphore(int permits, int count, int threads) throws Exception {
        connect(count, threads);
        return (name, warm, millis) -> {
            clients.get(0).getSemaphore(name).trySetPermits(permits);
            measure(threads, warm, millis, i -> {
                RSemaphore semaphore = clients.get(i % count).getSemaphore(name);
                return () -> {
                    semaphore.acquire();
                    semaphore.release();
                };
            });
        };
    }

    /** Each thread takes one of so many permits a second; it waits for it, or does without. */
    private Window limiter(int rate, int count, int threads, boolean waits) throws Exception {
        connect(count, threads);
        return (name, warm, millis) -> {
            clients.get(0).getRateLimiter(name).trySetRate(RateType.OVERALL, rate, 1, RateIntervalUnit.SECONDS);
            measure(threads, warm, millis, i -> {
                RRateLimiter limiter = clients.get(i % count).getRateLimiter(name);
                return () -> {
                    if (waits) {
                        limiter.acquire();
                    } else {
                        limiter.tryAcquire();
                    }
                };
            });
        };
    }

    private Window readWrite(int reads, int count, int threads) throws Exception {
        connect(count, threads);
        return (name, warm, millis) -> measure(threads, warm, millis, i -> {
            RLock read = Commands.lockOf(clients.get(i % count), "read", name);
            RLock write = Commands.lockOf(clients.get(i % count), "write", name);
            return () -> {
                RLock lock = ThreadLocalRandom.current().nextInt(100) < reads ? read : write;
                lock.lock();
                lock.unlock();
            };
        });
    }

    /** One process takes the lock and lets it go, and the other waits for it. */
    private Window handoff(String kind, boolean gives, Path socket) throws Exception {
        connect(1, 1);
        SocketChannel channel = meet(gives, socket);
        BufferedReader in = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
        PrintWriter out = new PrintWriter(Channels.newWriter(channel, StandardCharsets.UTF_8), true);
        return (name, warm, millis) -> {
            RLock lock = Commands.lockOf(clients.get(0), kind, name);
            if (gives) {
                give(lock, in, out, warm, millis);
            } else {
                take(lock, in, out);
            }
        };
    }

    private static SocketChannel meet(boolean listens, Path socket) throws Exception {
        UnixDomainSocketAddress address = UnixDomainSocketAddress.of(socket);
        if (listens) {
            try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                server.bind(address);
                return server.accept();
            }
        }
        for (long until = System.nanoTime() + MILLISECONDS.toNanos(30_000);;) {
            try {
                return SocketChannel.open(address);
            } catch (IOException e) {
                if (System.nanoTime() > until) {
                    throw e;
                }
                Thread.sleep(10); // the other process has not begun
            }
        }
    }

    /** The time until the release varies, so that no poll is in step with it. */
    private void give(RLock lock, BufferedReader in, PrintWriter out, long warm, long millis) throws Exception {
        List<Long> waits = new ArrayList<>();
        long from = System.nanoTime() + MILLISECONDS.toNanos(warm);
        long until = from + MILLISECONDS.toNanos(millis);
        for (long now = 0; now < until; now = System.nanoTime()) {
            lock.lock();
            out.println("wait");
            Thread.sleep(15, ThreadLocalRandom.current().nextInt(1_000_000));
            Thread.sleep(ThreadLocalRandom.current().nextInt(15));
            long released = wallClock();
            lock.unlock();
            long wait = Long.parseLong(in.readLine()) - released;
            if (System.nanoTime() > from) {
                waits.add(wait);
            }
        }
        out.println("end");
        percentiles(waits);
    }

    private static void take(RLock lock, BufferedReader in, PrintWriter out) throws Exception {
        for (String line = in.readLine(); "wait".equals(line); line = in.readLine()) {
            lock.lock();
            long at = wallClock();
            lock.unlock();
            out.println(at);
        }
    }

    /** The wall clock in nanoseconds: both processes are on one machine. */
    private static long wallClock() {
        Instant now = Instant.now();
        return SECONDS.toNanos(now.getEpochSecond()) + now.getNano();
    }

    private Window latch(int count, int waiters) throws Exception {
        connect(count, waiters);
        return (name, warm, millis) -> {
            List<Long> waits = new ArrayList<>();
            long from = System.nanoTime() + MILLISECONDS.toNanos(warm);
            long until = from + MILLISECONDS.toNanos(millis);
            for (int round = 0; System.nanoTime() < until; round++) {
                long wait = latchRound(count, waiters, name + ":" + round);
                if (System.nanoTime() > from) {
                    waits.add(wait);
                }
            }
            percentiles(waits);
        };
    }

    private long latchRound(int count, int waiters, String name) throws Exception {
        clients.get(0).getCountDownLatch(name).trySetCount(1);
        CountDownLatch ready = new CountDownLatch(waiters);
        CountDownLatch awake = new CountDownLatch(waiters);
        for (int i = 0; i < waiters; i++) {
            RCountDownLatch latch = clients.get(i % count).getCountDownLatch(name);
            Thread thread = new Thread(() -> {
                try {
                    ready.countDown();
                    latch.await();
                    awake.countDown();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        ready.await();
        Thread.sleep(300); // all have subscribed
        long zero = System.nanoTime();
        clients.get(0).getCountDownLatch(name).countDown();
        awake.await();
        return System.nanoTime() - zero;
    }

    /** Has threads work, and counts what they do after the time to warm up. */
    private void measure(int threads, long warm, long millis, Worker worker) throws Exception {
        long began = System.nanoTime();
        long from = began + MILLISECONDS.toNanos(warm);
        long until = from + MILLISECONDS.toNanos(millis);
        AtomicLongArray turns = new AtomicLongArray(threads);
        AtomicLong failed = new AtomicLong();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int mine = i;
            Work work = worker.of(i);
            Thread thread = new Thread(() -> {
                for (long now = began; now < until; now = System.nanoTime()) {
                    try {
                        work.once();
                        long end = System.nanoTime();
                        if (end > from && end < until) {
                            turns.incrementAndGet(mine);
                        }
                    } catch (Exception e) {
                        if (failed.getAndIncrement() == 0) {
                            System.err.println("the first failure: " + e);
                        }
                    }
                }
            });
            thread.setDaemon(true); // one that waits for ever does not hold up the rest
            all.add(thread);
            thread.start();
        }
        Thread.sleep(Math.max(0, NANOSECONDS.toMillis(until - System.nanoTime())) + 1);
        String counted = turns.toString(); // as it is now: those who were still waiting do not count
        int stuck = stuck(all);
        double seconds = NANOSECONDS.toMicros(until - from) / 1e6;
        fields += String.format(Locale.ROOT, ",\"seconds\":%.3f,\"turns\":%s,\"failed\":%d,\"stuck\":%d",
            seconds, counted, failed.get(), stuck);
    }

    /**
     * Waits until all threads have ended, and returns how many have not. Those that queue
     * end one after the other: they are stuck when none has ended for a while.
     */
    private static int stuck(List<Thread> all) throws InterruptedException {
        int alive = all.size();
        for (long last = System.nanoTime(); System.nanoTime() < last + MILLISECONDS.toNanos(PATIENCE_MILLIS);) {
            int now = 0;
            for (Thread thread : all) {
                now += thread.isAlive() ? 1 : 0;
            }
            if (now == 0) {
                return 0;
            }
            if (now < alive) {
                alive = now;
                last = System.nanoTime();
            }
            Thread.sleep(2);
        }
        return alive;
    }

    private void percentiles(List<Long> nanos) {
        if (nanos.isEmpty()) {
            return;
        }
        nanos.sort(null);
        fields += String.format(Locale.ROOT, ",\"samples\":%d,\"p50us\":%.1f,\"p99us\":%.1f,\"maxus\":%.1f",
            nanos.size(), at(nanos, 0.50), at(nanos, 0.99), at(nanos, 1));
    }

    private static double at(List<Long> sorted, double share) {
        return sorted.get((int) Math.ceil(share * sorted.size()) - 1) / 1e3;
    }

    /** Connects clients that have connections and channels enough for so many threads. */
    private void connect(int count, int threads) throws ReflectiveOperationException {
        int each = threads / count + 1;
        for (int i = 0; i < count; i++) {
            clients.add(Connection.open("single", address,
                "pool=" + Math.max(16, Math.min(each, 256)), "subscriptions=" + Math.max(50, each / 5 + 10)));
        }
    }

    private static int number(String[] args, int i) {
        return Integer.parseInt(args[i]);
    }
}

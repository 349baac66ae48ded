// How fast Redisson is at what Holdfast is measured at.

package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;

import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * Bench measures one thing: it prints "ready" when it has connected, begins when its
 * input says a line, and prints one line of JSON. Several of it may work at one name,
 * and so begin together. Clients of one share no connection and no subscription.
 *
 * <pre>
 * ADDRESS NAME pairs KIND THREADS MILLIS             lock and unlock, each thread its own name
 * ADDRESS NAME handoff KIND MILLIS                   from unlock in one client to lock in another
 * ADDRESS NAME contended KIND CLIENTS THREADS MILLIS one name, threads in all
 * ADDRESS NAME semaphore PERMITS CLIENTS THREADS MILLIS
 * ADDRESS NAME rw READS CLIENTS THREADS MILLIS       one name, READS of a hundred are reads
 * ADDRESS NAME latch CLIENTS WAITERS ROUNDS          from the last count-down to the last waiter awake
 * </pre>
 *
 * The first quarter of the time warms up and is not counted. What is left in Redis
 * stays there.
 */
final class Bench {
    private final String address;
    private final List<RedissonClient> clients = new ArrayList<>();
    private final String name;
    private String fields = "";

    private Bench(String address, String name) {
        this.address = address;
        this.name = name;
    }

    /** Work is what each thread does over and over. */
    private interface Work {
        void once() throws Exception;
    }

    /** Worker makes the work of the i-th thread. */
    private interface Worker {
        Work of(int i);
    }

    static void main(String[] args) throws Exception {
        Bench bench = new Bench(args[0], args[1]);
        bench.run(args[2], Arrays.copyOfRange(args, 3, args.length));
        System.out.printf(Locale.ROOT, "{\"redisson\":\"%s\"%s}%n",
            RedissonClient.class.getPackage().getImplementationVersion(), bench.fields);
    }

    private void run(String what, String[] args) throws Exception {
        switch (what) {
            case "pairs" -> pairs(args[0], number(args, 1), number(args, 2));
            case "handoff" -> handoff(args[0], number(args, 1));
            case "contended" -> contended(args[0], number(args, 1), number(args, 2), number(args, 3));
            case "semaphore" -> semaphore(number(args, 0), number(args, 1), number(args, 2), number(args, 3));
            case "rw" -> readWrite(number(args, 0), number(args, 1), number(args, 2), number(args, 3));
            case "latch" -> latch(number(args, 0), number(args, 1), number(args, 2));
            default -> throw new IllegalArgumentException(what);
        }
    }

    private void pairs(String kind, int threads, int millis) throws Exception {
        connect(1, threads);
        measure(threads, millis, i -> {
            RLock lock = Commands.lockOf(clients.get(0), kind, name + ":" + i);
            return () -> {
                lock.lock();
                lock.unlock();
            };
        });
    }

    private void contended(String kind, int count, int threads, int millis) throws Exception {
        connect(count, threads);
        measure(threads, millis, i -> {
            RLock lock = Commands.lockOf(clients.get(i % count), kind, name);
            return () -> {
                lock.lock();
                lock.unlock();
            };
        });
    }

    private void semaphore(int permits, int count, int threads, int millis) throws Exception {
        connect(count, threads);
        clients.get(0).getSemaphore(name).trySetPermits(permits);
        measure(threads, millis, i -> {
            RSemaphore semaphore = clients.get(i % count).getSemaphore(name);
            return () -> {
                semaphore.acquire();
                semaphore.release();
            };
        });
    }

    private void readWrite(int reads, int count, int threads, int millis) throws Exception {
        connect(count, threads);
        measure(threads, millis, i -> {
            RLock read = Commands.lockOf(clients.get(i % count), "read", name);
            RLock write = Commands.lockOf(clients.get(i % count), "write", name);
            return () -> {
                RLock lock = ThreadLocalRandom.current().nextInt(100) < reads ? read : write;
                lock.lock();
                lock.unlock();
            };
        });
    }

    private void handoff(String kind, int millis) throws Exception {
        connect(2, 2);
        RLock giver = Commands.lockOf(clients.get(0), kind, name);
        RLock taker = Commands.lockOf(clients.get(1), kind, name);
        SynchronousQueue<Long> taken = new SynchronousQueue<>();
        SynchronousQueue<Boolean> go = new SynchronousQueue<>();
        Thread other = new Thread(() -> {
            try {
                while (go.take()) {
                    taker.lock();
                    long at = System.nanoTime();
                    taker.unlock();
                    taken.put(at);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        other.start();
        List<Long> waits = new ArrayList<>();
        long began = System.nanoTime();
        for (long now = began; now < began + MILLISECONDS.toNanos(millis); now = System.nanoTime()) {
            giver.lock();
            go.put(true);
            Thread.sleep(5); // the taker has tried, subscribed, tried again, and sleeps
            long released = System.nanoTime();
            giver.unlock();
            long wait = taken.take() - released;
            if (now > began + MILLISECONDS.toNanos(millis) / 4) {
                waits.add(wait);
            }
        }
        go.put(false);
        other.join();
        percentiles(waits);
    }

    private void latch(int count, int waiters, int rounds) throws Exception {
        connect(count, waiters);
        List<Long> waits = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            String latchName = name + ":" + round;
            clients.get(0).getCountDownLatch(latchName).trySetCount(1);
            CountDownLatch ready = new CountDownLatch(waiters);
            CountDownLatch awake = new CountDownLatch(waiters);
            for (int i = 0; i < waiters; i++) {
                RCountDownLatch latch = clients.get(i % count).getCountDownLatch(latchName);
                new Thread(() -> {
                    try {
                        ready.countDown();
                        latch.await();
                        awake.countDown();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }).start();
            }
            ready.await();
            Thread.sleep(500); // all have subscribed
            long zero = System.nanoTime();
            clients.get(0).getCountDownLatch(latchName).countDown();
            awake.await();
            if (round >= rounds / 4) {
                waits.add(System.nanoTime() - zero);
            }
        }
        percentiles(waits);
    }

    /** Has threads work, and counts what they do after the first quarter of the time. */
    private void measure(int threads, int millis, Worker worker) throws Exception {
        long began = System.nanoTime();
        long from = began + MILLISECONDS.toNanos(millis) / 4;
        long until = began + MILLISECONDS.toNanos(millis);
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
        Thread.sleep(NANOSECONDS.toMillis(until - System.nanoTime()) + 1);
        String counted = turns.toString(); // as it is now: those who were still waiting do not count
        int stuck = 0;
        long patience = System.nanoTime() + MILLISECONDS.toNanos(30_000);
        for (Thread thread : all) {
            thread.join(Math.max(1, NANOSECONDS.toMillis(patience - System.nanoTime())));
            if (thread.isAlive()) {
                stuck++;
            }
        }
        double seconds = NANOSECONDS.toMicros(until - from) / 1e6;
        fields += String.format(Locale.ROOT, ",\"seconds\":%.3f,\"turns\":%s,\"failed\":%d,\"stuck\":%d",
            seconds, counted, failed.get(), stuck);
    }

    private void percentiles(List<Long> nanos) {
        nanos.sort(null);
        fields += String.format(Locale.ROOT, ",\"samples\":%d,\"p50us\":%.1f,\"p99us\":%.1f,\"maxus\":%.1f",
            nanos.size(), at(nanos, 0.50), at(nanos, 0.99), at(nanos, 1));
    }

    private static double at(List<Long> sorted, double share) {
        return sorted.get((int) Math.ceil(share * sorted.size()) - 1) / 1e3;
    }

    /** Connects clients that have connections and channels enough for so many threads, and waits for the start. */
    private void connect(int count, int threads) throws IOException, ReflectiveOperationException {
        int each = threads / count + 1;
        for (int i = 0; i < count; i++) {
            clients.add(Connection.open("single", address,
                "pool=" + Math.max(16, Math.min(each, 256)), "subscriptions=" + Math.max(50, each / 5 + 10)));
        }
        System.out.println("ready");
        if (System.in.read() < 0) {
            throw new EOFException("nobody said that it begins");
        }
    }

    private static int number(String[] args, int i) {
        return Integer.parseInt(args[i]);
    }
}

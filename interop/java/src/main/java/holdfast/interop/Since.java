// What not every version of Redisson has: found by its name when it is asked for.

package holdfast.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/** Since calls what the oldest Redisson that this is built with does not know. */
final class Since {
    private Since() { }

    /** Calls the public method of that name and number of arguments. */
    static Object call(Object target, String name, Object... args) {
        for (Method method : target.getClass().getMethods()) {
            if (!method.getName().equals(name) || !fits(method.getParameterTypes(), args)) {
                continue;
            }
            try {
                return method.invoke(target, args);
            } catch (InvocationTargetException e) {
                throw sneaky(e.getCause());
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        throw new UnsupportedOperationException(target.getClass().getSimpleName() + "." + name);
    }

    private static boolean fits(Class<?>[] types, Object[] args) {
        if (types.length != args.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            boolean number = types[i] == long.class && args[i] instanceof Long
                || types[i] == int.class && args[i] instanceof Integer;
            if (!number && !types[i].isInstance(args[i])) {
                return false;
            }
        }
        return true;
    }

    /** Throws what a called method threw, checked or not, as if called directly. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException sneaky(Throwable e) throws E {
        throw (E) e;
    }

    /** 3.29. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static void shardedSubscriptionMode(Object servers, String mode) {
        call(servers, "setShardedSubscriptionMode",
            Enum.valueOf((Class<Enum>) named("org.redisson.config.ShardedSubscriptionMode"), mode));
    }

    /** 3.16; since 4.0 the type has another package. */
    static void prefixNames(Object servers, String prefix) {
        Class<?> mapper;
        try {
            mapper = Class.forName("org.redisson.config.NameMapper");
        } catch (ClassNotFoundException e) {
            mapper = named("org.redisson.api.NameMapper");
        }
        call(servers, "setNameMapper", Proxy.newProxyInstance(Since.class.getClassLoader(), new Class<?>[] {mapper},
            (proxy, method, args) -> switch (method.getName()) {
                case "map" -> prefix + args[0];
                case "unmap" -> ((String) args[0]).substring(prefix.length());
                default -> throw new UnsupportedOperationException(method.getName());
            }));
    }

    private static Class<?> named(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new UnsupportedOperationException(name);
        }
    }
}
